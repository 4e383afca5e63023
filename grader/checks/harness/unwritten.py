"""Finds the op whose compute does not write its output on numpy.

In the child every new array is full of NaN. So an unwritten output is NaN, and so is everything
computed from it. The first node of the graph that is NaN is to blame.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from grader.checks.harness.compare import Array, Failure, left_over
from grader.checks.harness.context import Session
from grader.student.proxy import Opaque, StudentError

_MOST_NODES = 1000
_HINT = (
    "write into the array by output_val[...] = values; output_val = values only rebinds the name"
)


def blame(
    session: Session, nodes: list[Any], feeds: Mapping[Any, Array], failure: Failure
) -> Failure:
    """A failure that names the op which writes nothing; `failure` itself if there is no such op.

    Args:
        session: of the child.
        nodes: what the executor evaluates.
        feeds: what it was fed.
        failure: what is wrong with its values.
    """
    try:
        return _first(session, nodes, feeds) or failure
    except StudentError:
        return failure


def _first(session: Session, nodes: list[Any], feeds: Mapping[Any, Array]) -> Failure | None:
    """Evaluates all nodes except feeds by an executor of its own; returns the failure that the
    first NaN shows.

    Raises:
        ChildError: the student's code raises.
    """
    remote, ad = session.remote, session.autodiff()
    order = ad.find_topo_sort(nodes)
    count, length = remote.len(order), remote.builtin("len")
    if count > _MOST_NODES:
        return Failure(f"find_topo_sort returns {count:,} nodes for a graph of some dozen at most")
    inputs = remote.fetch_all([length(order[i].inputs) for i in range(count)])
    computed = [order[i] for i in range(count) if inputs[i] != 0]
    with remote.doing("an executor of all nodes"):
        results = ad.Executor(computed).run(dict(feeds))
        values = remote.fetch_all([results[i] for i in range(len(computed))])
    for node, value in zip(computed, values, strict=True):
        if isinstance(value, np.ndarray) and value.size and left_over(value).any():
            op = remote.fetch(node.op)
            kind = op.type_name[:60] if isinstance(op, Opaque) else "an op"
            missing = left_over(value)
            what = "the output was never written" if missing.all() else (
                f"{missing.sum():,} of {missing.size:,} elements of the output were never written"
            )  # fmt: skip
            return Failure(f"{kind}.compute on numpy: {what}", _HINT)
    return None
