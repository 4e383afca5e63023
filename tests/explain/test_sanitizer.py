"""The reports of compute-sanitizer become findings; the samples follow its documented form."""

import dataclasses
import os

import pytest

import catalogue
from findings.kinds import WORDS
from grader.building import tree as build
from grader.course.rubric import FindingsBudget, load_rubric
from grader.explain import compute_sanitizer
from grader.explain.compute_sanitizer import parse
from grader.explain.diagnosis import Diagnosis, NoFindings
from grader.grading.runner import Options, grade
from grader.report.model import FAIL, PASS

pytestmark = pytest.mark.usefixtures("same_builds")

ROOT = "/w"
SOURCES = {"src/gpu_op.cu": b"".join(b"line %d\n" % n for n in range(1, 60))}

MEMCHECK = """\
========= COMPUTE-SANITIZER
printed by the program
========= Invalid __global__ write of size 4 bytes
=========     at add_kernel(long, const float *, float *)+0x1a0 in /w/src/gpu_op.cu:31
=========     by thread (1,0,0) in block (4,0,0)
=========     Access at 0x7f6510c01004 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7f6510c00000 of size 4,100 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: main in b.cc:7 [0x1234]
=========
========= Invalid __global__ write of size 4 bytes
=========     at add_kernel(long, const float *, float *)+0x1a0 in /w/src/gpu_op.cu:31
=========     by thread (2,0,0) in block (4,0,0)
=========     Access at 0x7f6510c01008 is out of bounds
=========
========= Program hit cudaErrorLaunchFailure (error 719) due to "unspecified launch failure"
=========     Host Frame: cudaMemcpy [0x1]
=========
========= Leaked 16 bytes at 0x7f6510c00000
=========     Saved host backtrace up to driver entry point at allocation time
=========
========= ERROR SUMMARY: 3 errors
"""
MISALIGNED = """\
========= Invalid __shared__ read of size 16 bytes
=========     at load(float4 *)+0x30 in /w/src/gpu_op.cu:12
=========     by thread (3,2,0) in block (0,1,0)
=========     Address 0x84 is misaligned
=========     Device Frame: void ns::tiled_kernel<float, (int)4>(float *)+0x80 in gpu_op.cu:20
"""
RACE = """\
========= Error: Race reported between Write access at sum_kernel(int*)+0x210 in /w/src/gpu_op.cu:17
=========     and Read access at sum_kernel(int*)+0x510 in /w/src/gpu_op.cu:24 [256 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
OLD_RACE = """\
========= ERROR: Race reported between Read access at 0x000000c8 in gpu_op.cu:34:sum_kernel(int*)
=========     and Write access at 0x00000068 in gpu_op.cu:28:sum_kernel(int*, int*) [508 hazards]
"""
HAZARD = """\
========= Error: Potential RAW hazard detected at __shared__ 0x80 in block (1,0,0) :
=========     Write Thread (32,0,0) at sum_kernel(int*)+0xf0 in /w/src/gpu_op.cu:17
=========     Read Thread (0,0,0) at sum_kernel(int*)+0x190 in /w/src/gpu_op.cu:24
=========     Current Value : 0, Incoming Value : 1
"""
SYNCCHECK = """\
========= Barrier error detected. Divergent thread(s) in block.
=========     at reduce_kernel(float *)+0x40 in /w/src/gpu_op.cu:9
=========     by thread (64,0,0) in block (0,0,0)
"""
INITCHECK = """\
========= Uninitialized __global__ memory read of size 4 bytes
=========     at sum_kernel(const float *, float *)+0x60 in /w/src/gpu_op.cu:6
=========     by thread (3,0,0) in block (0,0,0)
=========     Address 0x7f6510c0000c
"""


def one(text, tool):
    (found,), more = parse(text, tool, ROOT, SOURCES)
    assert more == 0
    assert found["tool"] == tool
    return found


def where(found):
    return found["kernel"], found["file"], found["line"], found["thread"], found["block"]


def test_an_access_out_of_bounds_has_kernel_line_thread_and_block():
    found = one(MEMCHECK, "memcheck")
    assert where(found) == ("add_kernel", "src/gpu_op.cu", 31, [1, 0, 0], [4, 0, 0])
    assert (found["kind"], found["count"]) == ("out of bounds", 2)
    assert found["sentence"] == (
        "kernel add_kernel, block (4, 0, 0), thread (1, 0, 0): invalid __global__ write of size 4 "
        "bytes; access is out of bounds; and is 1 bytes after the nearest allocation of size "
        "4,100 bytes."
    )
    assert ">   31 | line 31" in found["source"]


def test_a_misaligned_access_is_told_at_its_line_and_by_its_kernel():
    found = one(MISALIGNED, "memcheck")
    assert found["kind"] == "misaligned access"
    assert where(found) == ("tiled_kernel", "src/gpu_op.cu", 12, [3, 2, 0], [0, 1, 0])


def test_a_race_has_both_lines_and_counts_its_hazards():
    found = one(RACE, "racecheck")
    assert where(found) == ("sum_kernel", "src/gpu_op.cu", 17, [], [])
    assert (found["other_file"], found["other_line"]) == ("src/gpu_op.cu", 24)
    assert (found["kind"], found["count"]) == ("race", 256)
    assert "write access and read access at src/gpu_op.cu:17, src/gpu_op.cu:24" in found["text"]


def test_a_race_in_the_older_form_is_read_too():
    found = one(OLD_RACE, "racecheck")
    assert (found["kernel"], found["line"], found["other_line"]) == ("sum_kernel", 34, 28)
    assert found["count"] == 508


def test_a_hazard_has_its_threads_place_and_block():
    found = one(HAZARD, "racecheck")
    assert where(found) == ("sum_kernel", "src/gpu_op.cu", 17, [32, 0, 0], [1, 0, 0])
    assert found["other_line"] == 24


def test_a_barrier_and_an_uninitialised_read_are_told():
    found = one(SYNCCHECK, "synccheck")
    assert found["kind"] == "barrier"
    assert where(found) == ("reduce_kernel", "src/gpu_op.cu", 9, [64, 0, 0], [0, 0, 0])
    found = one(INITCHECK, "initcheck")
    assert found["kind"] == "uninitialised read"
    assert where(found) == ("sum_kernel", "src/gpu_op.cu", 6, [3, 0, 0], [0, 0, 0])


@pytest.mark.parametrize(
    "report, tool, kind",
    [
        (MEMCHECK, "memcheck", "out-of-bounds read global"),
        (MEMCHECK.replace("__global__", "__shared__"), "memcheck", "out-of-bounds read shared"),
        (MISALIGNED, "memcheck", "misaligned access shared"),
        (RACE, "racecheck", "race shared"),
        (SYNCCHECK, "synccheck", "barrier not reached"),
        (INITCHECK, "initcheck", "uninitialised read global"),
    ],
)
def test_causes_and_hints_are_those_of_the_emulated_gpu(report, tool, kind):
    found = one(report, tool)
    assert (found["cause"], found["hint"]) == (WORDS[kind].cause, WORDS[kind].hint)


def test_summaries_leaks_and_errors_of_the_api_are_no_findings():
    quiet = MEMCHECK.partition("========= Program hit")[2]
    assert parse("========= Program hit" + quiet, "memcheck", ROOT, SOURCES) == ([], 0)
    assert parse("========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n", "memcheck",
                 ROOT, SOURCES) == ([], 0)  # fmt: skip


@pytest.mark.parametrize(("count", "line"), [
    (0, "========= Invalid "), (1, "========= Invalid \x1b[31m"),
    (1, "========= Error: Race reported between"),
    (1, "========= Invalid x\n=========     at " + "+" * 5000 + " in a:b"),
    (1, "========= Invalid x\n=========     at f()+0x1 in /etc/passwd:1"),
    (1, "========= Invalid x\n=========     by thread (1,2) in block (9,9,9,9)"),
    (0, "=========" + " " * 5000), (1, "========= Error: Potential RAW hazard detected"),
])  # fmt: skip
def test_what_a_program_prints_in_its_name_harms_nothing(count, line):
    every, _ = parse(line + "\n", "memcheck", ROOT, SOURCES)
    assert len(every) == count
    for found in every:
        assert found["source"] == []
        assert "\x1b" not in found["text"]
        assert len(found["sentence"]) < 600


@pytest.mark.parametrize("text", [MEMCHECK, MISALIGNED, RACE])
def test_a_file_without_its_folders_is_the_same_file(text):
    bare = text.replace("/w/src/gpu_op.cu", "gpu_op.cu")
    tool = "racecheck" if text == RACE else "memcheck"
    found, _ = parse(bare, tool, ROOT, SOURCES)
    assert found and {one["file"] for one in found} == {"src/gpu_op.cu"}
    assert [one["line"] for one in found] == [
        one["line"] for one in parse(text, tool, ROOT, SOURCES)[0]
    ]


def test_many_findings_are_cut():
    text = "".join(MEMCHECK.replace(":31\n", f":{n}\n") for n in range(1, 40))
    found, more = parse(text, "memcheck", ROOT, SOURCES)
    assert (len(found), more) == (16, 23)


# --- with a program in its place -----------------------------------------------------------------

FAKE = """\
#!/bin/sh
# Takes options as compute-sanitizer does, runs the command, reports afterwards.
tool=$2
while [ "${1#--}" != "$1" ]; do shift 2; done
echo "========= COMPUTE-SANITIZER"
"$@"
if [ "$tool" = memcheck ]; then
  echo "========= Invalid __global__ read of size 4 bytes"
  echo "=========     at elementwise_add_kernel(long, float *)+0x1a0 in $PWD/src/gpu_op.cu:148"
  echo "=========     by thread (1,0,0) in block (4,0,0)"
  echo "=========     Access at 0x7f00 is out of bounds"
fi
echo "========= ERROR SUMMARY: 1 error"
"""


@pytest.fixture
def as_cuda(monkeypatch):
    """Lets the emulated build pass for one of a real GPU."""
    monkeypatch.setattr(build, "backend_of", lambda tree: "cuda")


@pytest.fixture
def for_cuda_alone(monkeypatch, as_cuda):
    """What is graded does not compile for the emulated GPU."""

    def refuse(self, prebuilt):
        raise NoFindings("the checked build failed: no such header")

    monkeypatch.setattr(Diagnosis, "_build", refuse)


def graded(name, folder, **budget):
    mutant = {mutant.name: mutant for mutant in catalogue.mutants()}[name]
    rubric = load_rubric("default")
    rubric = dataclasses.replace(rubric, findings=FindingsBudget(**budget))
    report = grade(
        catalogue.write(mutant, folder), Options(rubric, "emulated", only=(mutant.check,))
    )
    return report.results[-1]


def put_on_path(monkeypatch, folder, script):
    folder.mkdir()
    (folder / "compute-sanitizer").write_text(script)
    (folder / "compute-sanitizer").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)


def test_on_a_real_gpu_the_checked_build_looks_first(monkeypatch, tmp_path, as_cuda):
    monkeypatch.setattr(compute_sanitizer, "find", lambda: pytest.fail("it takes far longer"))
    result = graded("add_no_guard", tmp_path / "work")
    assert result.status == FAIL
    assert result.findings[0]["tool"] == result.facts["findings"]["tool"] == "checked build"


def test_its_findings_become_those_of_the_result(monkeypatch, tmp_path, for_cuda_alone):
    put_on_path(monkeypatch, tmp_path / "bin", FAKE)
    result = graded("add_no_guard", tmp_path / "work")
    assert result.status == FAIL
    (found,) = result.findings
    assert where(found) == ("elementwise_add_kernel", "src/gpu_op.cu", 148, [1, 0, 0], [4, 0, 0])
    assert ">  148 |   out[i] = a[i] + b[i];" in found["source"]
    assert found["tool"] == "memcheck"
    assert result.facts["findings"]["tool"] == "compute-sanitizer"
    assert result.facts["findings"]["note"] == "the checked build failed: no such header; "


def test_a_tool_that_is_not_there_is_noted(monkeypatch, tmp_path, for_cuda_alone):
    monkeypatch.setattr(compute_sanitizer, "find", lambda: "")
    result = graded("add_no_guard", tmp_path)
    assert (result.status, result.findings) == (FAIL, [])
    assert result.facts["findings"]["note"].endswith("compute-sanitizer is not on this machine")


def test_a_tool_that_breaks_is_noted(monkeypatch, tmp_path, for_cuda_alone):
    put_on_path(monkeypatch, tmp_path / "bin", "#!/bin/sh\necho broken\nexit 7\n")
    result = graded("add_no_guard", tmp_path / "work")
    assert (result.status, result.findings) == (FAIL, [])
    assert "broken" in result.facts["findings"]["note"]


def test_without_time_nothing_is_run(monkeypatch, tmp_path, as_cuda):
    put_on_path(monkeypatch, tmp_path / "bin", FAKE)
    result = graded("add_no_guard", tmp_path / "work", total=0.5)
    assert (result.status, result.findings) == (FAIL, [])
    assert result.facts["findings"]["note"] == "no time is left of the 0.5 s for explanations"


def test_what_passes_is_never_explained(monkeypatch, as_cuda):
    monkeypatch.setattr(compute_sanitizer, "find", lambda: pytest.fail("the checked build sees it"))
    report = grade(build.KIT / "solution", audited("relu"))
    assert {result.status for result in report.results} == {PASS}
    assert not any(r.findings or "findings" in r.facts for r in report.results)
    assert report.results[-1].facts["audit"]["note"] == ""


def audited(*checks):
    return Options(load_rubric("default"), "emulated", only=checks)


def test_what_passes_is_audited_by_it_where_the_emulated_gpu_cannot(
    monkeypatch, tmp_path, for_cuda_alone
):
    """All checks in one child a tool; where that finds anything, each in its own."""
    silent = FAKE.replace('"$tool" = memcheck', "1 = 2")
    put_on_path(monkeypatch, tmp_path / "silent", silent)
    put_on_path(monkeypatch, tmp_path / "loud", FAKE)
    for which, status in (("silent", PASS), ("loud", FAIL)):
        path = str(tmp_path / which / "compute-sanitizer")
        monkeypatch.setattr(compute_sanitizer, "find", lambda path=path: path)
        report = grade(build.KIT / "solution", audited("relu", "softmax"))
        found = {result.check: result for result in report.results}
        assert {found[check].status for check in ("relu", "softmax")} == {status}
        for check in ("relu", "softmax"):
            assert "by compute-sanitizer: the checked build" in found[check].facts["audit"]["note"]
            assert ("by luck: out of bounds" in found[check].message) == (status == FAIL)
