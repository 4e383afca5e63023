"""The ladders of memory: rungs are right on the emulated GPU, and costs rank as times do."""

import functools
import json
import subprocess
import sys

import numpy as np
import pytest

import gemm_rungs
import ladder_rungs
import ladders
from ladder_rungs import KIT, LADDERS, SOURCES, code_of, names, source

KEPT = json.loads(ladders.KEPT.read_text())
IDS = [f"{ladder.name}/{file}" for ladder, file in names()]
FUNCTIONS = ("rung", "rung_values", "rung_times", "copy_times")
#: One file of all rungs compiles in a fraction of the time that their libraries take.
TOGETHER = """
{renamed}
namespace of_rung_{number} {{
#include "{rung}"
#undef DLSYS_LADDER_HARNESS_CUH_
#include "{sources}/ladder/harness.cuh"
}}
{restored}
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A library of all rungs, whose functions bear the numbers of rungs."""
    path = tmp_path_factory.mktemp("ladders") / "all.cu"
    text = f'#include <vector>\n#include "{SOURCES}/softmax/running.cuh"\n'
    for number, rung in enumerate(names()):
        text += TOGETHER.format(
            number=number, rung=source(*rung), sources=SOURCES,
            renamed="\n".join(f"#define {name} {name}_{number}" for name in FUNCTIONS),
            restored="\n".join(f"#undef {name}" for name in FUNCTIONS),
        )  # fmt: skip
    path.write_text(text)
    made = ["make", "-s", "--no-print-directory", "-C", KIT / "solution", "kernels"]
    made += [f"SOURCE={path}", f"TARGET={path.with_suffix('.so')}", f"PYTHON={sys.executable}"]
    done = subprocess.run(made, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return path.with_suffix(".so")


class OfRung:
    """The functions of one rung in that library."""

    def __init__(self, path, number):
        found = ladders.ctypes.CDLL(str(path))
        for name in FUNCTIONS[1:]:
            setattr(self, name, getattr(found, f"{name}_{number}"))


@pytest.mark.parametrize(("number", "rung"), [*enumerate(names())], ids=IDS)
def test_a_rung_is_right_on_sizes_that_nothing_divides(number, rung, built):
    library = ladders.typed(OfRung(built, number))
    ladders.check(library, rung[0])


def test_a_rung_is_timed_and_so_is_a_copy(built):
    library = ladders.typed(OfRung(built, 0))
    times = ladders.timed(library, LADDERS[0], (8, 8, 1))["us"]
    assert 0 < times[0] <= times[1] <= times[2]
    assert library.copy_times(64, 1, 1, ladders.floats(np.zeros(1, np.float32))) == 0


def test_a_wrong_rung_is_not_timed(built):
    library = ladders.typed(OfRung(built, len(LADDERS[0].rungs)))
    with pytest.raises(RuntimeError, match=r"1 x 2: error 0, off by"):
        ladders.check(library, LADDERS[0], [(1, 2)])
    assert set(ladders.timed(library, LADDERS[0], (8, 8, 1))) == {"failed"}


@pytest.mark.parametrize("name", ["vectors", "asynchronous"])
def test_a_rung_of_the_gemm_ladder_costs_what_the_page_says(name, tmp_path):
    rung = next(rung for rung in ladders.GEMM_COUNTED if rung.name == name)
    kept = KEPT["counted"]["gemm"][name]
    if kept["code"] != gemm_rungs.code_of(rung):
        pytest.skip("its code has changed since; hint: tools/ladders.py --count")
    assert ladders.gemm_cost(rung, tmp_path) == kept["cost"]


@pytest.mark.parametrize("rung", [(LADDERS[0], "r06_vectors"), (LADDERS[1], "r05_vectors")])
def test_a_rung_costs_what_the_page_says(rung, tmp_path):
    ladder, file = rung
    cost = ladder_rungs.cost_of_rung(*rung, tmp_path)
    assert cost == KEPT["counted"][ladder.name][file]["cost"]


def test_costs_rank_as_the_times_of_a_gpu_do():
    found = ladders.correlations(KEPT)
    assert "gemm" in found
    assert {name: value for name, value in found.items() if round(value, 9) < 0.9} == {}


def test_the_page_says_what_is_kept_and_which_rungs_have_other_code():
    assert ladders.page(KEPT) == ladders.PAGE.read_text()
    kept = json.loads(json.dumps(KEPT))
    kept["counted"]["softmax"]["r04_online"]["code"] = "other"
    changed = [line for line in ladders.page(kept).splitlines() if "(changed since)" in line]
    assert [line.split()[1] for line in changed] == ["r04_online"]


def test_the_page_shows_times_beside_costs_and_what_failed():
    rungs = {
        ladder.name: {file: {"code": code_of(ladder, file), "us": [9.0, 10.0 - i, 11.0]}
                      for i, file in enumerate(ladder.rungs)}
        for ladder in LADDERS
    }  # fmt: skip
    rungs["softmax"]["r04_online"] = {"code": code_of(LADDERS[1], "r04_online"), "failed": "wrong"}
    where = {"device": "a GPU", "driver": "1", "nvcc": "13.0", "date": "today", "torch": "none"}
    timed = {
        name: {"copy": [7, 8, 9], "torch": None, "rungs": each} for name, each in rungs.items()
    }
    kept = {**KEPT, "measured": {**where, "ladders": timed}}
    page = ladders.page(kept)
    assert "| 9.0 | 9.0 to 11.0 | 0.44 |" in page  # of r02 of a sum, 4 us at best
    assert "| 58,084 |  | wrong |  |" in page
    found = ladders.correlations(kept)
    assert (found["reduction"], found["softmax"]) == (pytest.approx(1), pytest.approx(1))


def test_shares_are_of_the_bandwidth_of_a_copy():
    sums, softmax = LADDERS[0], LADDERS[1]
    assert ladders.share(sums, 50.0, 100.0) == 1  # a sum reads, a copy writes as much as well
    assert ladders.share(softmax, 200.0, 100.0) == 0.5


def test_comments_and_white_space_are_no_change_of_a_rung():
    rung = names()[0]
    read = functools.partial(lambda more, path: path.read_text() + more, "\n// and this")
    assert code_of(*rung, read) == code_of(*rung)
    assert code_of(*rung, lambda path: path.read_text() + "int x;") != code_of(*rung)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([1, 2, 3], [10, 20, 90], 1),
        ([1, 2, 3], [3, 2, 1], -1),
        ([1, 2, 3, 4], [1, 2, 4, 3], 0.8),
        ([1, 1, 2], [1, 2, 3], 1.5 / 3**0.5),
    ],
)
def test_rank_correlation_is_spearmans(a, b, expected):
    assert ladder_rungs.rank_correlation(a, b) == pytest.approx(expected)
