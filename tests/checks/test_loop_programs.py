"""Programs of loops as the grader carries them out, and what it refuses of a child's answer."""

from pathlib import Path

import numpy as np
import pytest

from grader.checks.core import CORE
from grader.checks.harness.compare import Failure
from grader.checks.harness.loop_programs import Elements, Loop, evaluated, run_all, told
from grader.checks.hazards import closed, random_program, reduced
from grader.course.rubric import load_rubric
from grader.status import here

LINE = Elements(0, 0, (4,), (1,))
#: out = x * p0 + x, where out is buffer 1 and x buffer 0.
STATEMENTS = [["@i0@ * double(p0)", ""], ["@v0@ + @i0@", ""]]
KERNEL = ([4], [[1, 0]], [[0, 0]], [[1], [1]], STATEMENTS, [1], [2.0])


def test_a_kernel_reads_all_before_it_writes():
    memory = {0: np.arange(4.0), 1: np.full(4, np.nan)}
    run_all([told(KERNEL)], memory)
    assert memory[1].tolist() == [0.0, 3.0, 6.0, 9.0]


def test_rows_are_reduced_and_spread_again():
    statements = [["@i0@", "max"], ["@i0@ - @v0@", ""]]
    kernel = ([2, 3], [[1, 0]], [[0, 0]], [[3, 1], [3, 1]], statements, [1], [])
    memory = {0: np.arange(6.0), 1: np.full(6, np.nan)}
    run_all([told(kernel)], memory)
    assert memory[1].tolist() == [-2.0, -1.0, 0.0] * 2


def test_a_loop_works_on_views():
    matrix = Elements(0, 0, (2, 2), (2, 1))
    memory = {0: np.arange(4.0), 1: np.zeros(4)}
    target = matrix._replace(buffer=1)
    run_all([Loop("v0", "x0 - x1", target, (matrix.transposed, matrix.flipped))], memory)
    assert memory[1].tolist() == [-2.0, -1.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({1: [[0, 0]], 3: [[1], [-1]], 2: [[0, 3]]}, "other threads of it overwrite"),
        ({2: [[0, 1]]}, "elements 1 to 4 of a buffer of 4"),
        ({2: [[7, 0]]}, "no part of the program"),
        ({3: [[1], [10**12]]}, "of a buffer of 4"),
        ({5: [2]}, "neither given nor fused"),
        ({4: [["@i0@ * @i1@", ""], ["@v0@", ""]]}, "which nobody asked for"),
        ({4: [["__import__('os')", ""], ["@v0@", ""]]}, "which nobody asked for"),
        ({4: [["@i0@", "median"], ["@v0@", ""]]}, "neither given nor fused"),
        ({4: 3}, "neither given nor fused"),
        ({1: [], 3: [[1]]}, "neither given nor fused"),
    ],
)
def test_a_kernel_that_can_not_be_is_a_failure(change, said):
    raw = [change.get(place, part) for place, part in enumerate(KERNEL)]
    memory = {0: np.arange(4.0), 1: np.full(4, np.nan)}
    with pytest.raises(Failure, match=said):
        run_all([told(raw)], memory)


def test_two_outputs_in_one_buffer_are_a_failure():
    kernel = ([4], [[1, 0], [1, 0]], [[0, 0]], [[1]] * 3, STATEMENTS, [1, 0], [2.0])
    with pytest.raises(Failure, match="writes one buffer twice"):
        run_all([told(kernel)], {0: np.arange(4.0), 1: np.zeros(4)})


def test_an_expression_has_one_operator():
    values = {"x0": np.array([1.0, 2.0]), "p0": 3.0}
    assert evaluated("-x0", values).tolist() == [-1.0, -2.0]
    assert evaluated("x0 / p0", values).tolist() == [1 / 3, 2 / 3]
    with pytest.raises(Failure):
        evaluated("x0 + p0 + x0", values)


def test_waits_are_reduced_to_those_that_are_needed():
    waits = [[], [0], [0, 1], [0, 1, 2], [0]]
    assert reduced(waits) == [[], [0], [1], [2], [0]]
    random = np.random.default_rng(5)
    for _ in range(20):
        needed = random_program(random).needed()
        assert closed(reduced(needed)) == closed(needed)
        for number, each in enumerate(reduced(needed)):
            for other in each:
                fewer = reduced(needed)
                fewer[number] = [o for o in each if o != other]
                assert other not in closed(fewer)[number]


#: Speeds and the build are not asked here: they need more than a core.
PROGRAMS = [row.name for row in load_rubric("steps").rows if row.name in CORE]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_reference_passes_with_many_seeds(name, many):
    tree = Path(__file__).resolve().parents[2] / "solution"
    for seed in range(many(8, 2)):
        CORE[name](here.LocalContext(tree, load_rubric("steps"), "", str(seed), name, 30.0))
