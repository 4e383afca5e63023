"""Reads what make, compilers and linkers print, and explains it in terms of the student's files."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

_ERRORS = (
    # g++ and clang, and the emulated GPU's emucc
    re.compile(r"^(?P<file>[^\s:()]+):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<text>.+)$"),
    # nvcc
    re.compile(r"^(?P<file>[^\s:()]+)\((?P<line>\d+)\): (?:catastrophic )?error: (?P<text>.+)$"),
)
# "In file included from a.cu:3:", "a.cu:31:5:   required from here", "instantiation of ... at line
# 31 of a.cu", "a.cu:31:5: note: in instantiation of ... requested here"
_MENTIONS = (
    re.compile(r"(?:^|\s)(?P<file>[^\s:()]+):(?P<line>\d+)(?::|,|$)"),
    re.compile(r"at line (?P<line>\d+) of (?P<file>\S+)"),
)
_NAME = r"(?:[`'\"‘](?P<quoted>[^`'\"‘’\n]+)['\"’]|(?P<bare>[^\s;,:]+))"
_UNDEFINED = re.compile(r"undefined (?:reference to|symbol):? " + _NAME)
_TWICE = re.compile(r"(?:multiple definition of|duplicate symbol):? " + _NAME)
_WHY_UNDEFINED = (
    ": is its body missing, or does its declaration have another name or other parameters?"
)
_CONTEXT_BEFORE, _CONTEXT_AFTER = 30, 12  # lines around an error that may say where it comes from
_EXCERPT, _EXCERPT_BEFORE, _LONGEST = 12, 4, 300
_COMMAND = re.compile(r" -c | -shared |^\s+-M|emucc\.py|^make|^built |^(?:\S*g\+\+|nvcc) ")
_SOURCE = re.compile(r" -c (?P<file>\S+)")
_LINKS = re.compile(r"\s-shared\s")
# Where the emulated GPU's headers lay when they were precompiled, or lie now.
_OUTSIDE = re.compile(r"(?<![^\s'\"‘(<])/[^\s:'\"]*/(?=emulator/(?:include|src)/)")


@dataclass(frozen=True)
class CompileError:
    """The first error of a build.

    Attributes:
        file, line: a place in the student's own files if one leads to the error; "" and 0 if
            unknown.
        text: the compiler's message, or a sentence.
        found_in: "file:line" where the compiler stopped, if that is another place.
    """

    file: str
    line: int
    text: str
    found_in: str = ""

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}: " if self.file else ""
        return where + self.text + (f" (in {self.found_in})" if self.found_in else "")


def first_error(output: str, own: Collection[str] = ()) -> CompileError | None:
    """The first error in the output of make, or None.

    Args:
        output: everything that make printed.
        own: the student's files. An error in another file is reported at the line of these files
            that leads to it, if the compiler names one.
    """
    lines = in_tree(output).splitlines()
    for number, raw in enumerate(lines):
        for pattern in _ERRORS:
            match = pattern.match(raw.strip())
            if match:
                name, line = os.path.normpath(match["file"]), int(match["line"])
                return _at_home(CompileError(name, line, match["text"]), lines, number, own)
    return link_error(output)


def _at_home(
    error: CompileError, lines: list[str], number: int, own: Collection[str]
) -> CompileError:
    """The error, moved to the student's line that leads to it, if it lies in another file."""
    if not own or error.file in own:
        return error
    before = range(number - 1, max(-1, number - 1 - _CONTEXT_BEFORE), -1)
    after = range(number + 1, min(len(lines), number + 1 + _CONTEXT_AFTER))
    for near in [*before, *after]:
        if any(pattern.match(lines[near].strip()) for pattern in _ERRORS):
            continue
        for file, line in _mentions(lines[near]):
            if file in own:
                return CompileError(file, line, error.text, f"{error.file}:{error.line}")
    return error


def _mentions(text: str) -> Iterator[tuple[str, int]]:
    for pattern in _MENTIONS:
        for match in pattern.finditer(text):
            yield os.path.normpath(match["file"]), int(match["line"])


def in_tree(output: str) -> str:
    """The output with files of the emulated GPU named by their place in a tree. The folder of a
    submission is gone when a report is read, and where the kit lies is not the reader's
    business."""
    return _OUTSIDE.sub("", output)


def link_error(output: str) -> CompileError | None:
    """One sentence on a symbol that a linker or loader misses, or finds twice."""
    if match := _UNDEFINED.search(output):
        name = readable(match["quoted"] or match["bare"])
        return CompileError("", 0, f"`{name}` is called but not defined" + _WHY_UNDEFINED)
    if match := _TWICE.search(output):
        name = readable(match["quoted"] or match["bare"])
        return CompileError("", 0, f"`{name}` is defined twice")
    return None


def excerpt(output: str) -> list[str]:
    """The lines of make's output that belong to the first error, without the commands."""
    lines = [line for line in in_tree(output).splitlines() if line.strip()]
    lines = [line.rstrip()[:_LONGEST] for line in lines if not _COMMAND.search(line)]
    first = next((i for i, line in enumerate(lines) if _is_error(line)), len(lines))
    start = max(0, min(first - _EXCERPT_BEFORE, len(lines) - _EXCERPT))
    return lines[start : start + _EXCERPT]


def _is_error(line: str) -> bool:
    every = (*_ERRORS, _UNDEFINED, _TWICE)
    return any(pattern.search(line.strip()) for pattern in every)


def readable(symbol: str) -> str:
    """The demangled name: `ns::helper` for `_ZN2ns6helperEPf`; other names unchanged."""
    symbol = symbol.strip()
    match = re.match(r"_ZN?(?=\d)", symbol)
    if match is None:
        return symbol
    parts, rest = [], symbol[match.end() :]
    while length := re.match(r"\d{1,3}", rest):
        rest = rest[length.end() :]
        parts.append(rest[: int(length[0])])
        rest = rest[int(length[0]) :]
        if not symbol.startswith("_ZN"):
            break
    return "::".join(parts)


def last_step(output: str) -> str:
    """The last step that make began: "compiling src/gpu_op.cu" or "linking"; "" if it began
    none."""
    for line in reversed(output.splitlines()):
        if match := _SOURCE.search(line):
            return f"compiling {os.path.basename(match['file'])}"
        if _LINKS.search(line):
            return "linking"
    return ""
