"""docs/ops.md, which tools/ops_table.py writes."""

import json
import sys
from pathlib import Path

from test_ops import OPS

KIT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(KIT / "tools"))
import ops_table  # noqa: E402

#: What no real GPU has run yet; `tools/ops_table.py --name` on one takes them off this list.
NOT_YET_ON_A_GPU = {
    "average_pool_gradient_op", "average_pool_op", "cast_like_op", "cast_op",
    "convolution_gradient_op", "convolution_op", "max_pool_op", "placed_at_largest_op",
    "taken_at_largest_op",
}  # fmt: skip


def test_it_names_every_op_with_figures_that_are_small_enough():
    kept = json.loads(ops_table.KEPT.read_text())
    assert ops_table.TABLE.read_text() == ops_table.table(kept)
    drawing = {name for name, op in OPS.items() if getattr(op, "draws", False)}
    for machine_name, machine in kept["machines"].items():
        assert ops_table.too_large(machine["columns"]) == []
        for name, ops in machine["columns"].items():
            missing = OPS.keys() - drawing - ops.keys()
            known = set() if machine_name == "emulated GPU" else NOT_YET_ON_A_GPU
            assert missing == known, f"{name}; hint: python3 tools/ops_table.py"


def test_a_difference_that_is_too_large_is_told():
    columns = {"CPU float32": {"exp_op": {"value": 1e-3}, "log_op": {"value": float("nan")}}}
    assert ops_table.too_large(columns) == [
        "CPU float32: exp_op: value is off by 1.0e-03",
        "CPU float32: log_op: value is off by nan",
    ]
