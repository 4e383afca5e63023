"""Kernels as loops: they write the same bits as threads that run one by one.

The kernels are those of tests/emulator/loops.cu, and all of solution/src/gpu_op.cu.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).resolve().parent / "emulator"
sys.path.insert(0, str(PROGRAMS))

import kit as emulator_kit  # noqa: E402


@pytest.fixture(scope="session")
def kit(tmp_path_factory):
    """The library and all programs."""
    return emulator_kit.built(tmp_path_factory.getbasetemp() / "emulator")


def kernels():
    """The kernels of loops.cu that have a case."""
    text = (PROGRAMS / "loops.cu").read_text()
    return re.findall(r"^(?:SHOW\(|CASE\(show_)(\w+)", text, re.MULTILINE)


def explained(source):
    """How each kernel of a source runs, as rewrite.py says it."""
    done = subprocess.run(
        [sys.executable, emulator_kit.EMULATOR / "rewrite.py", "--explain", source],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return {name: how for name, how in (line.split(None, 1) for line in done.stdout.splitlines())}


@pytest.mark.parametrize("kernel", kernels())
def test_loops_write_the_bits_of_threads(kit, kernel):
    outputs = {}
    for loops in ("0", "1"):
        done = kit.run("loops", f"show_{kernel}", EMULATOR_LOOPS=loops, EMULATOR_THREADS="1")
        assert done.returncode == 0, done.stderr
        outputs[loops] = done.stdout
    assert outputs["0"] == outputs["1"]
    values = set(outputs["0"].splitlines()[:4000])
    assert kernel in ("counts",) or len(values) > 1  # it wrote something


CUT, LOOPS = "loops, cut at barriers", "loops"
HOW = {
    "guard_return": LOOPS, "guards_of_two": LOOPS, "wide_index": LOOPS, "strides": LOOPS,
    "product": LOOPS + ": in chunks", "flat_product": LOOPS + ": in chunks",
    "shared_tile": CUT + ": in chunks", "pointers_move": CUT + ": in chunks", "tree": CUT,
    "tree_of_while": CUT, "leaves_before_a_barrier": CUT, "whole_blocks_leave": CUT,
    "structs_and_arrays": CUT, "helpers": CUT, "of_namespace": LOOPS, "counts": CUT,
    "parameters_change": LOOPS, "switches": LOOPS,
    "may_differ": "fibers: the condition around a barrier may differ among threads",
    "breaks_out": "fibers: break or continue in a loop with a barrier",
    "lacks_a_barrier": "fibers: threads may use what others write without a barrier between",
    "takes_a_lambda": "fibers: a lambda",
    "votes": "fibers: it calls __syncthreads_count, which is not known",
    "hides_a_barrier": "fibers: the macro BARRIER",
    "specialised": "fibers: a specialisation",
    "as_a_value": "fibers: its name is used as a value",
    "conditional": "fibers: a preprocessor's line",
}  # fmt: skip


@pytest.mark.parametrize("kernel", HOW)
def test_it_is_known_which_kernels_become_loops(kernel):
    assert explained(PROGRAMS / "loops.cu")[kernel] == HOW[kernel]


def test_the_kernels_of_the_assignment_become_loops():
    how = explained(emulator_kit.ROOT / "solution/src/gpu_op.cu")
    fibers = {name for name, way in how.items() if way.startswith("fibers")}
    # Lanes exchange values, and thread 0 reads what it wrote, which looks like a lost barrier.
    assert fibers == {"softmax_kernel", "softmax_cross_entropy_kernel"}
    assert how["matrix_multiply_kernel_v1"] == "loops: in chunks"
    assert how["matrix_multiply_kernel"] == "loops, cut at barriers: in chunks"
    assert len(how) > 12
