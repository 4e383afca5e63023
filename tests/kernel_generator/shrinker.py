"""Makes a kernel that fails smaller while it still fails, and writes it down as a program."""

import subprocess
import sys
from pathlib import Path

from .kernel import make_kernel
from .program import cuda_kernel, shape
from .tree import Node

CASE = """// {what}
// Found by seed {seed}; made by `python -m kernel_generator --shrink {seed}`.
#include "check.h"
#include "harness.h"
{kernel}
CASE({name}) {{
  const Launch launch = {{{launch}}};
  CHECK(run_once(run_{seed}, launch) == cudaSuccess);
  CHECK(state().hash == 0x{hash}ull);
}}
"""


def nodes_of(node):
    """A node and all below it, the outer ones first."""
    yield node
    for part in node.parts:
        if isinstance(part, Node):
            yield from nodes_of(part)


def kind_of(report, seed):
    """What is wrong with a kernel, or None; a refusal counts with its message's words."""
    found = [d for d in report.disagreements if d.seed == seed]
    if not found or any(d.kind == "oracle refuses" for d in found):
        return None
    first = found[0]
    if "refuse" in first.kind:
        return first.kind
    return (
        first.kind.split(":")[0]
        if first.kind != "false finding"
        else first.kind + first.detail.split(":")[1]
    )


class Shrinker:
    """Tries simpler kernels, one change after the other."""

    def __init__(self, runner, seed, tries=150, say=None):
        self.runner, self.seed, self.left, self.say = runner, seed, tries, say
        self.kernel = make_kernel(seed)
        self.hash = self.detail = self.wanted = None
        self.wanted = self.kind()

    def kind(self):
        """How the kernel fails as it is now."""
        self.left -= 1
        report = self.runner.run([self.kernel], f"shrink{self.seed}")
        kind = kind_of(report, self.seed)
        if kind is not None and kind == (self.wanted or kind):
            self.hash = report.hashes.get((self.seed, 0), self.hash)
            self.detail = next(d for d in report.disagreements if d.seed == self.seed)
        return kind

    def fails(self):
        """Whether it still fails in the same way."""
        return self.left > 0 and self.kind() == self.wanted

    def attempt(self, node, parts):
        """Keeps other parts of a node if the kernel still fails."""
        old, node.parts = node.parts, list(parts)
        if self.fails():
            return True
        node.parts = old
        return False

    def run(self):
        """Shrinks until nothing helps; returns the kernel, or None if it does not fail."""
        if self.wanted is None:
            return None
        if self.kernel.messy:
            self.kernel.messy = False
            self.kernel.messy = not self.fails()
        self.fewer_launches()
        before = None
        while before != (before := self.size()) and self.left > 0:
            self.drop_top()
            self.drop_statements()
            self.simplify()
        self.fails()
        return self.kernel

    def size(self):
        """The length of the program's text."""
        return len(self.kernel.code.text()) + len(self.kernel.top.text())

    def fewer_launches(self):
        """One launch, as small as can be."""
        launches = self.kernel.launches
        for choice in reversed(launches):
            _, block, n = choice
            for smaller in (choice, ((1, 1, 1), block, min(n, block[0] * block[1] * block[2]))):
                old, self.kernel.launches = self.kernel.launches, [smaller, smaller]
                if not self.fails():
                    self.kernel.launches = old

    def drop_top(self):
        """Leaves out all that stands before the kernel and is not used."""
        for node in reversed(self.kernel.top.parts):
            first = node.text().replace("(", " ").split()
            names = [word for word in first if f"_{self.seed}_" in word]
            rest = self.kernel.code.text() + "".join(
                str(n) for n in self.kernel.top.parts if n is not node
            )
            rest += str(self.kernel.launch.arguments)
            if node.text() and (
                not names or not any(name.strip("{};:*&,") in rest for name in names)
            ):
                self.attempt(node, [])

    def drop_statements(self):
        """Leaves statements out, the longest first; or puts their bodies in their place."""
        nodes = [n for n in nodes_of(self.kernel.code) if n.drop and n.text().strip()]
        for node in sorted(nodes, key=lambda n: -len(n.text())):
            if node.text() not in self.kernel.code.text() or not node.text().strip():
                continue
            if not self.attempt(node, []):
                any(self.attempt(node, [simple]) for simple in node.simpler)

    def simplify(self):
        """Puts operands and small numbers in the place of expressions."""
        for node in list(nodes_of(self.kernel.code)):
            if node.drop or not node.simpler or node.text() not in self.kernel.code.text():
                continue
            any(len(str(s)) < len(node.text()) and self.attempt(node, [s]) for s in node.simpler)

    def case(self, name, what):
        """The text of a regression program."""
        grid, block, n = self.kernel.launches[0]
        return formatted(
            CASE.format(
                what=what,
                seed=self.seed,
                name=name,
                kernel=cuda_kernel(self.kernel).strip(),
                hash=self.hash,
                launch=f"{shape(grid)}, {shape(block)}, {n}",
            ),
            self.kernel.messy,
        )


def formatted(text, messy):
    """The text as clang-format writes it, where there is one; strange blanks are kept."""
    program = Path(sys.executable).parent / "clang-format"
    text = "\n".join(line for line in text.splitlines() if line.strip() or messy) + "\n"
    if messy or not program.exists():
        return text
    style = "{BasedOnStyle: Google, ColumnLimit: 100, SortIncludes: false}"
    return subprocess.run(
        [program, f"--style={style}"], input=text, capture_output=True, text=True, check=True
    ).stdout
