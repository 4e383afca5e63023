"""Random graphs of sums and products: in the child, and here, where their gradients are known."""

from __future__ import annotations

from typing import Any

import numpy as np

from grader.checks.harness.compare import ROUND64, Array
from grader.checks.harness.context import Session

_LEAVES = 3
_SIZE = 16
#: Diamonds in a line, each of two uses of the one before.
_DIAMONDS = 3
_TRIES = 100


class RandomGraph:
    """A random graph whose nodes are not made in depth-first order.

    Each node takes its inputs from all earlier nodes, so that some are used often and some never.
    All nodes have one name.

    Attributes:
        leaves: number of placeholders, which come first.
        steps: (sign, inputs, constant) of each other node; sign is "+" or "*".
        nodes: proxies of the nodes in the child.
    """

    def __init__(self, random: np.random.Generator, session: Session) -> None:
        self.leaves = _LEAVES
        for _ in range(_TRIES):
            self.steps = _draw(random)
            order = self.order([self.deepest()])
            if order != sorted(order) and len(order) > _SIZE // 2:
                break
        name = str(random.choice(["x", "node", "a"]))
        self.nodes = [session.variable(name) for _ in range(_LEAVES)]
        for sign, inputs, constant in self.steps:
            left = self.nodes[inputs[0]]
            right: Any = self.nodes[inputs[1]] if len(inputs) == 2 else constant
            node = left + right if sign == "+" else left * right
            node.name = name
            self.nodes.append(node)

    def inputs(self, place: int) -> list[int]:
        """The numbers of a node's inputs."""
        return self.steps[place - self.leaves][1] if place >= self.leaves else []

    def deepest(self) -> int:
        """The node that depends on most others."""
        return max(range(len(self.steps) + self.leaves), key=lambda i: len(self.order([i])))

    def asked(self, random: np.random.Generator) -> list[int]:
        """Some nodes in random order, the one with most inputs among them."""
        others = random.choice(len(self.steps) + self.leaves, 2, replace=False)
        return [int(i) for i in random.permutation([self.deepest(), *others])]

    def order(self, places: list[int]) -> list[int]:
        """The nodes that these depend on, in post-order of a depth-first search."""
        found: list[int] = []

        def visit(place: int) -> None:
            if place not in found:
                for each in self.inputs(place):
                    visit(each)
                if place not in found:
                    found.append(place)

        for place in places:
            visit(place)
        return found

    def name(self, place: int) -> str:
        """A node's name in messages: v7 was made seventh."""
        return f"v{place}"

    def words(self, places: list[int]) -> str:
        """The definitions of these nodes and of all that they depend on, in the order of their
        making."""
        lines = []
        for place in sorted(self.order(places)):
            if place >= self.leaves:
                sign, inputs, constant = self.steps[place - self.leaves]
                right = self.name(inputs[1]) if len(inputs) == 2 else f"{constant:g}"
                lines.append(f"{self.name(place)} = {self.name(inputs[0])} {sign} {right}")
        return ", ".join(lines)

    def gradients(self, output: int, fed: list[Array]) -> tuple[list[Array], list[Array]]:
        """The gradients of the sum of `output` with respect to every node, and bounds of their
        errors.

        A gradient is a sum of products of fed values. The bound is the rounding of all operations,
        relative to the same sum of absolute values.
        """
        exact = self._backward(output, fed, np.asarray)
        largest = self._backward(output, fed, np.abs)
        rounding = 16 * ROUND64 * (len(self.steps) + self.leaves)
        return exact, [rounding * (1 + values) for values in largest]

    def _backward(self, output: int, fed: list[Array], sign_of: Any) -> list[Array]:
        values = [sign_of(value) for value in fed]
        for sign, inputs, constant in self.steps:
            left = values[inputs[0]]
            right = values[inputs[1]] if len(inputs) == 2 else sign_of(constant)
            values.append(left + right if sign == "+" else left * right)
        grads = [np.zeros(fed[0].shape) for _ in values]
        grads[output] = np.ones(fed[0].shape)
        for place in range(output, self.leaves - 1, -1):
            sign, inputs, constant = self.steps[place - self.leaves]
            for which, each in enumerate(inputs):
                other = values[inputs[1 - which]] if len(inputs) == 2 else sign_of(constant)
                grads[each] = grads[each] + grads[place] * (1 if sign == "+" else other)
        return grads


def _draw(random: np.random.Generator) -> list[tuple[str, list[int], float]]:
    steps: list[tuple[str, list[int], float]] = []
    for _ in range(_SIZE):
        place = len(steps) + _LEAVES
        sign = "+" if random.random() < 0.6 else "*"
        inputs = [int(i) for i in random.integers(place, size=1 if random.random() < 0.25 else 2)]
        steps.append((sign, inputs, round(float(random.uniform(-2, 2)), 2)))
    for _ in range(_DIAMONDS):
        last = len(steps) + _LEAVES - 1
        steps.append(("*", [last], 0.5))
        steps.append(("+", [last, last + 1], 0.0))
    return steps
