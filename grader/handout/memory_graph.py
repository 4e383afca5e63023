"""The graph of a small network, with its gradients and memory plan, from the reference's package.

Although the reference is the instructor's own code, it runs in a process of its own.
"""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.building.tree import KIT, REFERENCE

_PROGRAM = KIT / "handout" / "graph.py"
_SECONDS = 60
#: What the nodes are called in pictures, where the class's name says it badly.
_NAMES = {
    "SoftmaxCrossEntropyOp": "cross-entropy",
    "DivideByRowsOp": "divide by rows",
    "OnesLikeOp": "ones",
    "ReluGradientOp": "relu gradient",
    "AddOp": "add",
    "MulOp": "multiply",
}


class GraphError(Exception):
    """The reference's graph can't be read; the message says why."""


@dataclass(frozen=True)
class GraphNode:
    """A node, in the order of computation.

    Attributes:
        name: its name in a picture.
        inputs: numbers of the nodes that it reads.
        shape: of its value.
        forward: whether the loss is computed from it; else it belongs to the gradients.
        buffer: number of its allocation; None if it is fed.
        last: number of the last node that reads it; its own if none does.
    """

    number: int
    name: str
    inputs: tuple[int, ...]
    shape: tuple[int, ...]
    forward: bool
    buffer: int | None
    last: int

    @property
    def size(self) -> int:
        """Bytes of its float32 value."""
        return 4 * math.prod(self.shape)


@dataclass(frozen=True)
class Graph:
    """The nodes in the order of computation, and what the executor allocates for them.

    Attributes:
        evaluated: numbers of the nodes that the caller gets.
        buffers: bytes of each allocation.
    """

    steps: tuple[GraphNode, ...]
    evaluated: tuple[int, ...]
    buffers: tuple[int, ...]

    @property
    def computed(self) -> list[GraphNode]:
        """The nodes that need memory: all that are not fed."""
        return [step for step in self.steps if step.buffer is not None]


def read_graph(reference: Path = REFERENCE) -> Graph:
    """The graph of handout/graph.py, as the package in `reference` makes it.

    Raises:
        GraphError: the program failed.
    """
    environment = {**os.environ, "PYTHONPATH": str(reference / "python")}
    command = [sys.executable, str(_PROGRAM)]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GraphError(f"{_PROGRAM.name} did not run: {error}") from error
    if done.returncode:
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise GraphError(
            f"{_PROGRAM.name} failed with the package in {reference}: {''.join(last)}; "
            "hint: run the reference's own tests"
        )
    return _graph(json.loads(done.stdout))


def _graph(raw: dict[str, Any]) -> Graph:
    nodes = raw["nodes"]
    last = {i: i for i in range(len(nodes))}
    for number, node in enumerate(nodes):
        last.update(dict.fromkeys(node["inputs"], number))
    steps = tuple(
        GraphNode(
            number=number,
            name=_name(node),
            inputs=tuple(node["inputs"]),
            shape=tuple(node["shape"]),
            forward=node["forward"],
            buffer=node["buffer"],
            last=last[number],
        )
        for number, node in enumerate(nodes)
    )
    return Graph(steps, tuple(raw["evaluated"]), tuple(4 * n for n in raw["elements"]))


def _name(node: dict[str, Any]) -> str:
    """matmul(A, Bᵀ) for a MatMulOp, "times -1" for a MulByConstOp, else the class in words."""
    kind = node["op"]
    if node["name"]:
        return str(node["name"])
    if kind == "MatMulOp":
        a, b = ("ᵀ" if flag else "" for flag in node["transposed"])
        return f"matmul A{a} B{b}"
    if kind in ("MulByConstOp", "AddByConstOp"):
        return f"{'times' if kind == 'MulByConstOp' else 'plus'} {node['constant']:g}".replace(
            "-", "−"
        )
    words = re.sub(r"(?<!^)(?=[A-Z])", " ", kind.removesuffix("Op")).lower()
    return _NAMES.get(kind, words)
