"""Lays out the plain C++ that the passes make, so that it can be read: by clang-format."""

import os
import shutil
import subprocess
import sys

#: The second part is what clang-format cannot know of the macros of include/emulator.
STYLE = """{BasedOnStyle: Google, ColumnLimit: 100, DerivePointerAlignment: false,
BreakStringLiterals: false, FixNamespaceComments: false, SortUsingDeclarations: Never,
StatementMacros: [EMULATOR_BLOCK, EMULATOR_ROW, EMULATOR_NUMBER, EMULATOR_INTEGER, EMULATOR_THREAD],
AttributeMacros: [EMULATOR_INLINE, EMULATOR_UNCHECKED],
Macros: ['EMULATOR_ROWS=for (;;)', 'EMULATOR_SIDE_BY_SIDE=for (;;)']}"""
HINT = "hint: python3 -m pip install clang-format"


class LayoutError(Exception):
    """Nothing can be laid out here; the message says why."""


def clang_format():
    """The path of clang-format, or None."""
    beside = os.path.join(os.path.dirname(sys.executable), "clang-format")
    return beside if os.path.exists(beside) else shutil.which("clang-format")


def laid_out(text):
    """C++ as clang-format lays it out."""
    program = clang_format()
    if program is None:
        raise LayoutError("there is no clang-format; " + HINT)
    done = subprocess.run(
        [program, "--style=" + STYLE, "--assume-filename=a.cc"], input=text,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, encoding="utf-8", errors="surrogateescape",
    )  # fmt: skip
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["exit code %d" % done.returncode]
        raise LayoutError("%s: %s; %s" % (program, said[0], HINT))
    return done.stdout
