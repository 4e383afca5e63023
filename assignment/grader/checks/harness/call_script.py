"""Keeps the last call of a check, and writes it as a script that runs without the grader."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, field

from grader.checks.harness.compare import Array

_HEAD = '''"""{title}

Needs numpy and {name}.npz beside it. Run it in the folder of the work, which is built there, or
name that folder:
    python {name}.py FOLDER
"""
import pathlib, sys
import numpy as np
sys.path.insert(0, str(pathlib.Path((sys.argv[1:] or ["."])[0]) / "python"))
data = np.load(pathlib.Path(__file__).with_suffix(".npz"))
'''

_TAIL = """
for name, values in got.items():
    if np.shape(values) != data["expected_" + name].shape:
        print(name, "has shape", np.shape(values), "expected", data["expected_" + name].shape)
        continue
    wrong = ~(np.abs(values - data["expected_" + name]) <= data["bound_" + name])
    print(name, "differs in", int(wrong.sum()), "of", wrong.size, "elements")
    for i in list(zip(*np.nonzero(wrong)))[:5]:
        print(" ", [int(n) for n in i], "got", values[i], "expected", data["expected_" + name][i])
"""


@dataclass
class Call:
    """A call and its values.

    Attributes:
        title: the call in words.
        body: lines of Python that make the call. They use `np` and `data`, and leave in `got` a
            dict of the arrays to compare with `expected`.
        arrays: what the lines read from `data`.
        expected: name in `got` -> (the right values, the largest accepted difference).
    """

    title: str
    body: list[str]
    arrays: dict[str, Array] = field(default_factory=dict)
    expected: dict[str, tuple[Array, Array]] = field(default_factory=dict)

    def script(self, name: str) -> str:
        """The script, which makes the call and prints what differs. It reads its values from
        NAME.npz."""
        title = textwrap.fill(self.title, 96)
        return _HEAD.format(title=title, name=name) + "\n".join(self.body) + _TAIL

    def contents(self) -> dict[str, Array]:
        """The arrays of NAME.npz."""
        right = {f"expected_{name}": pair[0] for name, pair in self.expected.items()}
        bounds = {f"bound_{name}": pair[1] for name, pair in self.expected.items()}
        return {**self.arrays, **right, **bounds}


def comma(words: Iterable[str]) -> str:
    """The words, joined like a list of arguments."""
    return ", ".join(words)
