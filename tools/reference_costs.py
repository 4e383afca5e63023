"""Counts what the reference's kernels of part 3 move, for graders that have no solution.

    make -C solution checked PYTHON=$PWD/.venv/bin/python
    .venv/bin/python tools/reference_costs.py

Writes grader/checks/speed/reference_costs.json, with which a Gradescope autograder scores counted
cost: it holds no line of a solution.
"""

import ctypes
import json
import os
import sys
from pathlib import Path

import numpy as np

KIT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(KIT), str(KIT / "solution/python")]

from grader.checks.speed.counted import KEPT
from grader.checks.speed.fast_kernels import CALLS


def numbers(library):
    """All numbers as they are now, and what each is worth, by name."""
    library.emulator_traffic_name.restype = ctypes.c_char_p
    for function in (library.emulator_traffic, library.emulator_traffic_cost):
        function.restype = ctypes.c_int64
    found, costs = {}, {}
    while name := library.emulator_traffic_name(len(found)):
        costs[name.decode()] = library.emulator_traffic_cost(len(found))
        found[name.decode()] = library.emulator_traffic(len(found))
    return found, costs


def counted(calls=CALLS):
    """What is kept: the numbers of each call, and what each is worth."""
    from dlsys import gpu_op, ndarray
    from dlsys._base import _LIB

    gpu, kept = ndarray.gpu(0), {"costs": numbers(_LIB)[1], "calls": {}}
    for call in calls:
        arrays = [ndarray.array(np.zeros(shape, np.float32), gpu) for shape in call.inputs]
        before = numbers(_LIB)[0]
        getattr(gpu_op, call.kernel)(*arrays, ndarray.empty(call.out, gpu))
        after = numbers(_LIB)[0]
        kept["calls"][call.text] = {name: after[name] - before[name] for name in after}
    return kept


def main():
    """Counts in a process that counts, and writes the file."""
    wanted = {"DLSYS_CHECKED": "1", "EMULATOR_TRAFFIC": os.devnull}
    if not wanted.items() <= os.environ.items():
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **wanted})
    kept = counted()
    lines = [f"  {json.dumps(text)}: {json.dumps(one)}" for text, one in kept["calls"].items()]
    calls = ",\n".join(lines)
    KEPT.write_text(f'{{"costs": {json.dumps(kept["costs"])},\n "calls": {{\n{calls}\n}}}}\n')


if __name__ == "__main__":
    main()
