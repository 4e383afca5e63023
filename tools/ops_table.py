"""Runs every op of the full set on every back end, beside numpy, and writes docs/ops.md.

    python3 tools/ops_table.py [--name NAME]
    python3 tools/ops_table.py --table-only

The figures of a machine are kept in docs/ops.json under NAME ("emulated GPU", or the real one's):
a run on a machine with a GPU adds its column. Exit code 1 if a difference is too large.
"""

import argparse
import contextlib
import importlib.metadata
import json
import sys
from datetime import date
from pathlib import Path

KIT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(KIT / name) for name in ("solution/python", "tests/dlsys", "tests/support")]

import numpy as np
from test_backend import CLASSIC, GRAPHS, OPS
from test_ops import applied

from dlsys import autodiff, dtypes, ndarray
from dlsys.backend import cpu, gpu, kernels
from dlsys.backend.lowering import Lowering
from dlsys.gradcheck import evaluate

KEPT, TABLE = KIT / "docs/ops.json", KIT / "docs/ops.md"
#: What a difference beside the largest value may be: some units in the last place.
BOUNDS = {"float32": 2e-5, "float64": 1e-11, "bfloat16": 8e-2}
PARTS = ("value", "gradient", "second")

INTRODUCTION = """# Operations

Every op of `dlsys.ops` and of the classic set on every back end, as `tools/ops_table.py` ran them:
the largest difference from numpy's float64, divided by 1 plus the largest value, over all samples
of the op. Three numbers are those of the value, the gradient and the gradient of the gradient.
The same graphs are tests (`tests/dlsys/test_backend.py`). numpy itself is held against finite
differences (`test_ops.py`, `test_ops_gradients.py`) and against PyTorch {oracle}
(`test_ops_oracle.py`).
A number that a bfloat16 can't hold is off by up to 0.004 of it before any op begins.

{machines}

"""


def graphs():
    """Op name -> [(nodes, feeds, what each node is)]; of the classic set the values alone."""
    found = {}
    for name in OPS:
        for _, op, nodes, feeds in GRAPHS:
            if op is OPS[name]:
                found.setdefault(name, []).append((nodes, feeds, parts_of(op, nodes)))
        if name in CLASSIC:
            for sample in OPS[name].samples:
                node, feeds = applied(OPS[name], sample)
                found.setdefault(name, []).append(([node], feeds, ["value"]))
    return found


def parts_of(op, nodes):
    """What each node of a graph is: the value, a gradient for each input, then theirs."""
    grads = len(nodes[0].inputs)
    return ["value", *["gradient"] * grads, *["second"] * (len(nodes) - 1 - grads)]


def compiled_in_one_go(backend, cases, dtype):
    """Compiles the kernels of all cases, so that no run waits for its own."""
    keys = {}
    for nodes, feeds, _ in cases:
        lowering = Lowering({n: (v.shape, dtype) for n, v in feeds.items()}, wide(dtype))
        for node in autodiff.find_topo_sort(nodes):
            if node not in feeds:
                lowering.lower(node)
        keys.update(dict.fromkeys(each.key for each in lowering.instructions))
    kernels.kernels(backend, list(keys))


def wide(dtype):
    """The type in which an op of that type adds up."""
    return dtype if dtype == dtypes.FLOAT64 else dtypes.FLOAT32


def differences(cases, ctx, dtype):
    """Part -> the largest difference."""
    found = {}
    for nodes, feeds, parts in cases:
        rounded = {node: values.astype(dtype) for node, values in feeds.items()}
        fed = {node: ndarray.array(values, ctx, dtype) for node, values in rounded.items()}
        wanted = evaluate(nodes, {n: v.astype(np.float64) for n, v in rounded.items()})
        got = autodiff.Executor(nodes, ctx=ctx).run(fed, True)
        for part, value, expected in zip(parts, got, wanted, strict=True):
            distance = np.abs(value.astype(np.float64) - expected).max(initial=0)
            scaled = float(distance / (1 + np.abs(expected).max(initial=0)))
            found[part] = max(found.get(part, 0.0), scaled)
    return found


def measured(kinds):
    """Column -> op -> part -> difference."""
    cases = graphs()
    result = {}
    for column, backend, ctx, dtype in kinds:
        print(column, flush=True)
        compiled_in_one_go(backend, [case for each in cases.values() for case in each], dtype)
        result[column] = {name: differences(each, ctx, dtype) for name, each in cases.items()}
    return result


def too_large(columns):
    """Lines of what is over its bound."""
    return [
        f"{column}: {name}: {part} is off by {found:.1e}"
        for column, ops in columns.items()
        for name, parts in ops.items()
        for part, found in parts.items()
        if not found <= BOUNDS[column.rpartition(" ")[2]]
    ]


def figure(difference):
    """A difference as text."""
    return f"{difference:.0e}" if difference else "0"


def table(kept):
    """The page."""
    names = sorted(OPS)
    columns = [name for machine in kept["machines"].values() for name in machine["columns"]]
    figures = {}
    for machine in kept["machines"].values():
        figures.update(machine["columns"])
    machines = "\n".join(
        f"- {name}: {machine['date']}, numpy {machine['numpy']}"
        for name, machine in kept["machines"].items()
    )
    lines = [INTRODUCTION.format(oracle=kept["oracle"], machines=machines)]
    lines.append("| op | " + " | ".join(columns) + " |\n")
    lines.append("|---" * (len(columns) + 1) + "|\n")
    for name in names:
        cells = []
        for column in columns:
            parts = figures[column].get(name, {})
            instead = "draws" if getattr(OPS[name], "draws", False) else "not run"
            cells.append(" / ".join(figure(parts[p]) for p in PARTS if p in parts) or instead)
        lines.append(f"| {name.removesuffix('_op')} | " + " | ".join(cells) + " |\n")
    return "".join(lines)


def main():
    """Runs the ops, keeps the figures of this machine and writes the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--name", default="emulated GPU", help="what the GPU of this machine is")
    parser.add_argument("--table-only", action="store_true", help="write docs/ops.md from ops.json")
    options = parser.parse_args()
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {"machines": {}, "oracle": ""}
    wrong = []
    if not options.table_only:
        on_gpu, on_cpu = ndarray.gpu(0), ndarray.cpu(0)
        bfloat16 = dtypes.BFLOAT16
        kinds = [
            (f"{options.name} float32", gpu, on_gpu, dtypes.FLOAT32),
            (f"{options.name} float64", gpu, on_gpu, dtypes.FLOAT64),
            (f"{options.name} bfloat16", gpu, on_gpu, bfloat16),
        ]
        if options.name == "emulated GPU":
            kinds = [
                ("CPU float32", cpu, on_cpu, dtypes.FLOAT32),
                ("CPU float64", cpu, on_cpu, dtypes.FLOAT64),
                ("CPU bfloat16", cpu, on_cpu, bfloat16),
                *kinds,
            ]
        columns = measured(kinds)
        wrong = too_large(columns)
        kept["machines"][options.name] = {
            "date": date.today().isoformat(), "numpy": np.__version__, "columns": columns,
        }  # fmt: skip
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            kept["oracle"] = importlib.metadata.version("torch")
        KEPT.write_text(json.dumps(kept, indent=1) + "\n")
    TABLE.write_text(table(kept))
    print("\n".join(wrong) or f"wrote {TABLE}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
