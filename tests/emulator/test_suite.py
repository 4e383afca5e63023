"""The suite of small CUDA programs: what its comments say, and what it prints on the emulated GPU.

tests/suite/gpu.json keeps what the same programs printed on a real GPU, see tests/suite/README.md.
"""

import json
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

SUITE = Path(__file__).resolve().parents[1] / "suite"
sys.path.insert(0, str(SUITE))

import emulated  # noqa: E402
import manifest  # noqa: E402
import run_gpu  # noqa: E402
import table  # noqa: E402

PROGRAMS = manifest.programs()
# How the emulated GPU may be told to run a kernel, which must make no difference.
SETTINGS = ({}, {"EMULATOR_THREADS": "1"}, {"EMULATOR_LOOPS": "0"})


def test_the_suite_is_large_and_every_kind_has_a_bug():
    bugs = [program for program in PROGRAMS if not program.correct]
    assert len(PROGRAMS) >= 90 and len(bugs) >= 35
    found = {kind for program in bugs for kind in program.finds}
    assert found == set(manifest.KINDS + manifest.ADVICE)


def test_every_bug_has_a_correct_twin():
    names = {program.name for program in PROGRAMS}
    for program in PROGRAMS:
        if not program.correct:
            assert program.name + ".fixed" in names


@pytest.mark.parametrize(
    "text, said",
    [
        ("// bug: b\n", "lacks finds, line, sanitizer"),
        (
            "// bug: b\n// finds: oops\n// line: none\n// sanitizer: none\n// FIXED",
            "'oops' is none",
        ),
        ("// bug: b\n// finds: leak\n// line: MARK\n// sanitizer: none\n// FIXED", "marked lines"),
        ("// bug: b\n// finds: leak\n// line: none\n// sanitizer: none\n", "ask for FIXED"),
        ("// bug: b\n// find: leak\n", "no field 'find'"),
    ],
)
def test_wrong_comments_are_told(tmp_path, text, said):
    (tmp_path / "bugs").mkdir()
    (tmp_path / "bugs" / "wrong.cu").write_text(text)
    with pytest.raises(manifest.ManifestError, match=f"wrong.cu: .*{re.escape(said)}"):
        manifest.programs(tmp_path)


# One test, so that one process builds the programs once.
def test_what_is_correct_prints_on_the_emulated_gpu_what_a_real_one_printed(tmp_path, many):
    programs = many(PROGRAMS, manifest.half(PROGRAMS, 0))
    kit = emulated.built(emulated.SuiteKit(tmp_path / "suite"), programs)
    correct = [program for program in programs if program.correct]
    with ThreadPoolExecutor() as pool:
        runs = pool.map(lambda p: [kit.run(p, **env) for env in SETTINGS], correct)
        outputs = dict(zip(correct, runs, strict=True))
    for program, runs in outputs.items():
        for done in runs:
            assert done.returncode == 0, f"{program.name}: {done.stderr}"
            assert "# cudaError" not in done.stdout, f"{program.name}: {done.stdout}"
            assert done.stderr == "", program.name
    if not (SUITE / "gpu.json").exists():
        pytest.skip("tests/suite/gpu.json does not exist: the suite was not run on a real GPU yet")
    gpu = json.loads((SUITE / "gpu.json").read_text())
    for program, runs in outputs.items():
        for done in runs:
            if program.compared:
                wanted = manifest.compared_lines(gpu[program.name]["stdout"])
                assert manifest.compared_lines(done.stdout) == wanted, program.name


MEMCHECK = """\
========= COMPUTE-SANITIZER
3
========= Invalid __global__ write of size 4 bytes
=========     at fill(int *, int)+0x90 in guard.cu:19
=========     by thread (232,0,0) in block (3,0,0)
=========
========= Leaked 16 bytes at 0x7f
========= LEAK SUMMARY: 16 bytes leaked in 1 allocations
========= ERROR SUMMARY: 2 errors
"""
RACECHECK = """\
========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at a.cu:12 and Read access at a.cu:14
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""


def test_reports_of_tools_are_counted_and_the_first_is_kept():
    run = run_gpu.reports(MEMCHECK, 9)
    assert run["reports"] == 2
    assert run["first"].splitlines()[0] == "Invalid __global__ write of size 4 bytes"
    assert len(run["first"].splitlines()) == 3
    assert run_gpu.reports(RACECHECK, 9)["reports"] == 1
    clean = run_gpu.reports("========= ERROR SUMMARY: 0 errors\n", 0)
    assert clean == {"reports": 0, "first": ""}
    assert "failed" in run_gpu.reports("", None)


def test_a_table_says_who_finds_what():
    bug, twin = (p for p in PROGRAMS if p.path.stem == "leak")
    tools = {tool: {"reports": 0, "first": ""} for tool in manifest.TOOLS}
    gpu = {
        "leak": {
            "exit": 0,
            "stdout": "961\n",
            "tools": {**tools, "memcheck": {"reports": 1, "first": "Leaked 128 bytes"}},
        },
        "leak.fixed": {"exit": 0, "stdout": "961\n", "tools": tools},
    }
    ours = {bug: [{"kind": "leak", "file": "leak.cu", "line": bug.lines[0]}], twin: []}
    text = table.document([bug, twin], gpu, ours.get)
    assert "(`leak`) | – | **yes** | **yes** | – | – | – |" in text
    assert "None." in text
    ours = {bug: [{"kind": "leak", "file": "leak.cu", "line": 1}], twin: ours[bug]}
    text = table.document([bug, twin], gpu, ours.get)
    assert "(`leak`) | – | *line* | **yes**" in text and "- `leak.fixed`: ours (leak)" in text
