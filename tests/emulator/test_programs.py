"""The course-like programs of tests/programs on the emulated GPU, and bugs seeded in them.

Every program runs fast and thread by thread. The checked build takes as long again: a fixed
sixth of the programs and an eighth of the bugs pass it here, all by the scripts of tests/programs.
"""

import emulated_programs
import program_manifest
import pytest
import seeded_bugs

from shares import share

PROGRAMS = program_manifest.programs()
BUGS = program_manifest.bugs()
GROUPS = 4  # so that several processes share the work
# Of how many one passes through the checked build: about a second of CPU each.
OF_PROGRAMS, OF_BUGS = 6, 8


@pytest.fixture(scope="module")
def fast(kit, tmp_path_factory):
    """Builds programs against the library that the session has anyway."""
    made = emulated_programs.ProgramKit(tmp_path_factory.mktemp("fast"))
    made.library = kit.library
    return made


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """Builds programs of the checked build."""
    made = emulated_programs.ProgramKit(tmp_path_factory.mktemp("checked"), checked=True)
    made.build_library()
    return made


def said_of(program, made, settings):
    """All complaints about a program; it is built once, and run with each of the settings."""
    try:
        made.build(program)
    except emulated_programs.BuildError as error:
        return [str(error)]
    wanted = emulated_programs.expected()
    runs = [made.run_program(program, **env) for env in settings]
    said = [text for run in runs for text in emulated_programs.complaints(program, run, wanted)]
    if len({run.stdout for run in runs}) > 1:
        said.append("prints something else thread by thread")
    return said


def test_there_are_programs_and_bugs_enough():
    assert len(PROGRAMS) >= 64
    assert len(BUGS) >= 32
    assert len({bug.name for bug in BUGS}) == len(BUGS)
    for program in PROGRAMS:
        lines = sum(len(source.read_text().splitlines()) for source in program.sources)
        assert 30 <= lines <= 220, program.name


def test_every_bug_is_an_edit_of_a_program():
    names = {program.name for program in PROGRAMS}
    for bug in BUGS:
        assert bug.program in names, bug.name
        assert bug.line_number() is not None, bug.name


def test_a_text_that_is_not_there_once_is_told():
    bug = BUGS[0].__class__("twice", "vector_add", "vector_add.cu", "h_A", "x", (), "", "")
    with pytest.raises(program_manifest.ManifestError, match="'h_A' is 6 times"):
        bug.edited()


def test_expected_output_is_that_of_these_programs():
    wanted = emulated_programs.expected()
    if not wanted:
        pytest.skip("tests/programs/expected.json does not exist: no real GPU ran them yet")
    assert set(wanted) == {program.name for program in PROGRAMS}


@pytest.mark.parametrize("group", share(range(GROUPS), 2))
def test_programs_are_right_fast_and_thread_by_thread(fast, group):
    settings = ({}, emulated_programs.THREAD_BY_THREAD)
    said = {p.name: said_of(p, fast, settings) for p in PROGRAMS[group::GROUPS]}
    assert {name: texts for name, texts in said.items() if texts} == {}


def test_right_programs_are_not_accused(checked):
    said = {p.name: said_of(p, checked, ({},)) for p in PROGRAMS[::OF_PROGRAMS]}
    assert {name: texts for name, texts in said.items() if texts} == {}


def test_seeded_bugs_are_found_at_their_line(checked, tmp_path):
    said = {bug.name: seeded_bugs.result(bug, checked, tmp_path) for bug in BUGS[::OF_BUGS]}
    assert {name: text for name, text in said.items() if text} == {}
