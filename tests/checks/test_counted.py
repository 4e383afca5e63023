"""Points by counted cost: what is said of the numbers, and which numbers and sources are refused.

Whole gradings by it are in tests/submissions/steps.
"""

import json

import numpy as np
import pytest

from grader.checks.harness.compare import Failure
from grader.checks.harness.outcomes import Flag
from grader.checks.speed import counted
from grader.checks.speed.counted import CountedCall
from grader.checks.speed.fast_kernels import CALLS
from grader.grading import checked_builds

NUMBERS = {
    "launches": 1, "blocks": 16, "warps": 64, "own_bytes": 12800, "requests": 0, "bytes": 0,
    "load_sectors": 1000, "store_sectors": 100, "atomic_sectors": 0, "shared_requests": 500,
    "shared_turns": 500,
    "replays": 0, "shuffles": 0, "barriers": 0, "cost": 2800,
}  # fmt: skip
COSTS = {"launches": 100, "load_sectors": 2, "store_sectors": 2, "atomic_sectors": 2,
         "shared_turns": 1, "shuffles": 1, "barriers": 1}  # fmt: skip
CALL = CountedCall("k", ((100, 80),), (100, 8), lambda x: (x, 0))


def numbers(**changes):
    """Numbers like the reference's, but for some."""
    return {**NUMBERS, **changes}


def test_advice_names_the_number_that_costs_most_beyond_the_references():
    (said,) = counted.advice(numbers(load_sectors=9000, shared_turns=550), NUMBERS, COSTS)
    assert said.startswith("9,000 sectors read, where the reference has 1,000: let neighbouring")


def test_advice_on_turns_tells_conflicts_from_too_many_reads():
    (many,) = counted.advice(numbers(shared_turns=4000), NUMBERS, COSTS)
    (conflicts,) = counted.advice(numbers(shared_turns=4000, replays=3500), NUMBERS, COSTS)
    assert "more elements a thread" in many
    assert "pad the rows of the tile" in conflicts


def test_nothing_is_advised_to_who_is_as_fast_as_the_reference():
    assert counted.advice(NUMBERS, NUMBERS, COSTS) == []
    assert counted.advice(numbers(load_sectors=1080), NUMBERS, COSTS) == []


def test_two_launches_more_are_worth_their_cost():
    (said,) = counted.advice(numbers(launches=4), NUMBERS, COSTS)
    assert said.startswith("4 launches, where the reference has 1")


def test_few_blocks_leave_a_gpu_idle():
    assert counted.idle(numbers(blocks=1)) == 4
    assert counted.idle(numbers(blocks=4)) == counted.idle(NUMBERS) == 1
    assert counted.idle(numbers(blocks=6, warps=48, launches=3)) == 2
    assert counted.idle(numbers(warps=4)) == 4
    assert counted.idle(numbers(warps=16)) == 1
    assert "cut the work into more blocks" in counted.advice(numbers(blocks=1), NUMBERS, COSTS)[0]


@pytest.mark.parametrize(
    "few",
    [{"load_sectors": 999}, {"store_sectors": 99}, {"launches": 0}],
    ids=["reads", "writes", "launches"],
)
def test_fewer_sectors_than_the_arrays_have_can_not_be_true(few):
    counted.require_possible(NUMBERS, CALL)
    counted.require_possible(numbers(store_sectors=60, atomic_sectors=40), CALL)
    with pytest.raises(Flag, match="is right, but reads"):
        counted.require_possible(numbers(**few), CALL)


def test_a_thread_has_no_more_of_its_own_than_registers_hold():
    counted.require_registers(NUMBERS, CALL)
    with pytest.raises(Failure, match=r"a thread has about 5,000 bytes of its own"):
        counted.require_registers(numbers(own_bytes=16 * 5000), CALL)


@pytest.mark.parametrize(
    "text",
    [
        '__attribute__((no_sanitize("thread"))) void f();',
        "__attribute__((no_san\\\nitize_thread)) void f();",
        "#define J(a, b) a##b",
        'asm("nop");',
        "__m256 x = _mm256_loadu_ps(p);",
        "extern int64_t emulator_traffic(int);",
        "void __tsan_read4(void*) {}",
        "cublasSgemm(handle);",
        'const char* a = "/*"; void __tsan_read4(void*) {} const char* b = "*/";',
        'const char* a = "http://"; void __tsan_read4(void*) {}',
        "int a = '/*'; void __tsan_read4(void*) {} int b = '*/';",
        "int a = 1'0; const char* b = \"' /* \"; void __tsan_read4(void*) {} int c = '*/';",
        "#if 0\n don't /*\n#endif\nvoid __tsan_read4(void*) {}",
        'const char* a = R"x(" /* )x"; void f() {}',
        "#define J(a, b) a%:%:b",
        "__attribute__((no_san\\ \nitize_thread)) void f();",
        "__attribute__((no_san\\\r\nitize_thread)) void f();",
        "__attribute__((__CONCAT(no_sani, tize_thread))) void f();",
        "#include <sys/tree.h>",
        "#include HEADER",
        '#include "/usr/include/valgrind/valgrind.h"',
        '# 1 "/usr/include/x.h" 3',
        "/* */ #line 7",
        "#if __has_include(<a/*b>)",
        "static thread_local float tile[1024];",
    ],
)
def test_a_source_that_could_hide_its_work_is_not_counted(text):
    with pytest.raises(Failure, match=r"src/x\.cu has ('.*'|a raw string), by which work could"):
        counted.require_open({"src/x.cu": f"int a;\n{text}\n".encode()})


def test_comments_and_other_files_may_say_what_they_like():
    counted.require_open(
        {
            "src/x.cu": b"// as on the emulated GPU: emulator\n/* asm\n ## */ int memory = 1 << 2;",
            "python/x.py": b"## asm emulator",
        }
    )


@pytest.mark.parametrize(
    "text",
    [
        '#include "./c_runtime_api.h"\n#include <algorithm>\n# include <bits/stdc++.h>  // all',
        "#include <cooperative_groups/reduce.h>\n#include <cuda_runtime.h>\n#include <math.h>",
        '#define SAID "r"\nint a = 1\'000; const char *b = "in R", c = \'"\';  // don\'t: asm',
        "#pragma unroll\nconst int kLine = __LINE__;\n#define TWICE(x) \\\n  x x",
    ],
)
def test_a_plain_source_is_counted(text):
    counted.require_open({"src/x.cu": text.encode()})


def test_the_references_numbers_are_kept_of_every_call_that_may_be_counted():
    kept = json.loads(counted.KEPT.read_text())
    assert set(kept["calls"]) == {call.text for call in CALLS}
    for one in kept["calls"].values():
        worth = sum(kept["costs"][name] * one[name] for name in one if name != "cost")
        assert worth == one["cost"]


def test_the_summary_says_both_costs():
    said = counted.summary(CALL, 0.5, numbers(cost=5600), NUMBERS)
    assert said == (
        "k: 0.50 of the reference's speed by what is counted, a cost of 5,600 against 2,800"
    )
    assert counted.out_size(CALL) == np.prod(CALL.out)


@pytest.mark.parametrize(
    ("name", "is_unseen"),
    [("__memcpy_chk", True), ("__strcpy_chk", True), ("__wmemmove_chk", True), ("wmemcpy", True),
     ("__fprintf_chk", False), ("__printf_chk", False), ("memcpy", False)],
)  # fmt: skip
def test_what_prints_moves_no_values(name, is_unseen):
    assert bool(checked_builds._UNSEEN.fullmatch(name)) == is_unseen
