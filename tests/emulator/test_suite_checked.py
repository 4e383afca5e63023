"""The checked build finds every bug of the suite at its line, and is silent on what is correct."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

import checked
import emulated
import manifest

#: Bugs that the checked build does not find yet, with the reason: none.
NOT_FOUND = {}
PROGRAMS = manifest.programs()


@pytest.fixture(scope="module")
def programs(many):
    """All, or those that test_suite.py leaves out."""
    return many(PROGRAMS, manifest.half(PROGRAMS, 1))


@pytest.fixture(scope="module")
def results(tmp_path_factory, programs):
    """The findings of every program, by its name: run in order, then shuffled if correct."""
    kit = emulated.built(checked.CheckedKit(tmp_path_factory.mktemp("checked")), programs)

    def run(program):
        found = [kit.findings(program)]
        if program.correct:
            found.append(kit.findings(program, EMULATOR_SHUFFLE="5"))
        return found

    with ThreadPoolExecutor(2) as pool:
        return dict(zip([p.name for p in programs], pool.map(run, programs), strict=True))


def test_correct_programs_are_never_accused(results, programs):
    wrong = {
        program.name: differences
        for program in programs
        if program.correct
        for findings, done in results[program.name]
        for differences in [checked.differences(program, findings)]
        if differences or done.returncode
    }
    assert not wrong


def test_every_bug_is_found_at_its_line(results, programs):
    wrong = {}
    for program in programs:
        if program.correct:
            continue
        (findings, _), *_ = results[program.name]
        differences = checked.differences(program, findings)
        if bool(differences) != (program.name in NOT_FOUND):
            wrong[program.name] = differences or ["found, although it is in NOT_FOUND"]
    assert not wrong


def test_correct_programs_print_what_a_real_gpu_printed(results, programs):
    recorded = json.loads((manifest.SUITE / "gpu.json").read_text())
    for program in programs:
        if program.correct and program.compared:
            for _, done in results[program.name]:
                wanted = recorded[program.name]["stdout"]
                got = manifest.compared_lines(done.stdout)
                assert got == manifest.compared_lines(wanted), program.name
