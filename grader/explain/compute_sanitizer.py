"""Finds compute-sanitizer, and reads its reports as findings.

Its tools print, behind `=========`, a headline and indented lines: the place, the thread, the
address, and the host's stack, which is left out.
"""

from __future__ import annotations

import functools
import os
import re
import runpy
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grader.base.printable import plain
from grader.building.tree import REFERENCE, emulator_of
from grader.explain.findings import finding, quoted

#: The tools, in the order in which they are run, with their options.
TOOLS: dict[str, tuple[str, ...]] = {
    "memcheck": ("--report-api-errors", "no"),
    "racecheck": ("--racecheck-report", "analysis"),
    "synccheck": (),
    "initcheck": (),
}

_PRINT_LIMIT = "50"
_KEPT = 16
_PREFIX = "========="
_MAX_LINE = 600
_HEADLINE = re.compile(
    r"(?P<invalid>(?:Invalid|Misaligned) .*)|(?P<uninitialised>Uninitialized .*)"
    r"|(?P<barrier>Barrier error.*|Divergent thread.*|.*barrier.*)"
    r"|(?:Error: |Warning: )(?P<race>(?:Race reported|.*hazard detected).*)",
    re.IGNORECASE,
)
_FRAME = re.compile(r"^\s+(?:at |#\d+ |Device Frame: ?)(?P<rest>.+)$")
_IN_FILE = re.compile(
    r"(?P<kernel>[^+]+?)(?:\+0x[0-9a-fA-F]+)? in (?P<file>\S.*):(?P<line>\d{1,7})(?!\d)"
)
_FILE_FIRST = re.compile(r" in (?P<file>[^\s:]+):(?P<line>\d{1,7}):(?P<kernel>.+)$")
_THREAD = re.compile(r"by thread \((\d+),(\d+),(\d+)\) in block \((\d+),(\d+),(\d+)\)")
_RACE_THREAD = re.compile(r"(?:Write|Read) Thread \((\d+),(\d+),(\d+)\)")
_RACE_BLOCK = re.compile(r"in block \((\d+),(\d+),(\d+)\)")
_SIDE = re.compile(r"\b(?P<what>Write|Read|Atomic) access at (?P<rest>.+)$")
_COUNT = re.compile(r"\[(\d{1,9}) hazards?\]")

#: A kind of finding, for memory that is shared or not -> the kind of the emulated GPU's table that
#: has the words for it. Its races are those of racecheck, which looks at shared memory alone.
_KINDS = {
    "out of bounds": ("out-of-bounds read global", "out-of-bounds read shared"),
    "misaligned access": ("misaligned access global", "misaligned access shared"),
    "race": ("race shared", "race shared"),
    "uninitialised read": ("uninitialised read global", "uninitialised read shared"),
    "barrier": ("barrier not reached", "barrier not reached"),
}


def find() -> str:
    """The path of compute-sanitizer, or ""."""
    found = shutil.which("compute-sanitizer")
    if found:
        return found
    roots = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    nvcc = shutil.which(os.environ.get("NVCC") or "nvcc")
    roots += [str(Path(nvcc).resolve().parent.parent)] if nvcc else []
    for root in [*roots, "/usr/local/cuda"]:
        for folder in ("bin", "compute-sanitizer"):
            path = Path(root, folder, "compute-sanitizer")
            if path.is_file() and os.access(path, os.X_OK):
                return str(path)
    return ""


def command(path: str, tool: str) -> tuple[str, ...]:
    """The words before a command that make `tool` watch it and print its findings."""
    common = ("--print-limit", _PRINT_LIMIT, "--show-backtrace", "device")
    return (path, "--tool", tool, *TOOLS[tool], *common)


@functools.cache
def _table() -> Mapping[str, Any]:
    """Kind -> its words, in the kit's emulated GPU."""
    found = runpy.run_path(str(emulator_of(REFERENCE) / "findings/kinds.py"))["WORDS"]
    assert isinstance(found, dict)
    return found


@dataclass
class _Block:
    """A report: its headline and the lines below it."""

    head: str
    lines: list[str] = field(default_factory=list)


def parse(
    text: str, tool: str, root: str, sources: Mapping[str, bytes]
) -> tuple[list[dict[str, Any]], int]:
    """(the findings in a tool's output, one for each kernel and line; how many are left out).

    Args:
        text: the output of tool and program; student code may have written into it.
        tool: its name.
        root: the tree, which is removed from the paths of files.
        sources: the files of the tree by name, for quotations.
    """
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    by_name = {os.path.basename(name): name for name in sources}  # the tools may leave folders out
    for block in _blocks(text):
        one = _finding(block, tool, root)
        if one is None:
            continue
        for side in ("file", "other_file"):
            one[side] = by_name.get(one[side], one[side])
        key = one["kind"], one["kernel"], one["file"], one["line"], one["other_line"]
        if key in found:
            found[key]["count"] += one["count"]
        else:
            found[key] = one
    every = [quoted(one, sources) for one in found.values()]
    return every[:_KEPT], len(every[_KEPT:])


def _blocks(text: str) -> Iterator[_Block]:
    block: _Block | None = None
    for raw in text.splitlines():
        if not raw.startswith(_PREFIX):
            continue
        said = plain(raw[len(_PREFIX) :]).rstrip()[:_MAX_LINE]
        if block is not None and said.startswith("     "):
            block.lines.append(said)
            continue
        if block is not None:
            yield block
        block = _Block(said.strip()) if _HEADLINE.match(said.strip()) else None
    if block is not None:
        yield block


def _finding(block: _Block, tool: str, root: str) -> dict[str, Any] | None:
    match = _HEADLINE.match(block.head)
    assert match is not None
    if match["race"]:
        return _race(block, match["race"], tool, root)
    kind = "barrier" if match["barrier"] else "uninitialised read"
    if match["invalid"]:
        kind = "misaligned access" if _says(block, "misaligned") else "out of bounds"
    place, kernel = _where(block.lines, root)
    thread, home = _indices(block.lines)
    access = next((ln.strip() for ln in block.lines if re.match(r"\s+(Access|Address) ", ln)), "")
    nearest = next((line.strip() for line in block.lines if "nearest allocation" in line), "")
    return _made(tool, kind, block.head, kernel, thread, home, place, ("", 0),
                 [_without_address(words) for words in (access, nearest) if words])  # fmt: skip


def _race(block: _Block, head: str, tool: str, root: str) -> dict[str, Any]:
    """The finding of a race: of two accesses in analysis mode, of two threads in hazard mode."""
    sides = [match for line in (head, *block.lines) if (match := _SIDE.search(line))]
    places = [_place(side["rest"], root) for side in sides[:2]]
    if not places:  # "Write Thread (0,0,0) at 0x90 in file.cu:17:kernel"
        lines = [line for line in block.lines if _RACE_THREAD.search(line)]
        places = [_place(line.partition(" at ")[2], root) for line in lines[:2]]
    places += [(("", 0), "")] * (2 - len(places))
    thread = next((_triple(m) for ln in block.lines if (m := _RACE_THREAD.search(ln))), [])
    home = _triple(match) if (match := _RACE_BLOCK.search(head)) else []
    kernel = places[0][1] or places[1][1]
    what = " and ".join(f"{side['what'].lower()} access" for side in sides[:2])
    where = ", ".join(f"{place[0]}:{place[1]}" for place, _ in places if place[0])
    words = f"race between {what or 'two accesses'}" + (f" at {where}" if where else "")
    found = _made(tool, "race", words, kernel, thread, home, places[0][0], places[1][0], [])
    counts = [int(m[1]) for line in (head, *block.lines) if (m := _COUNT.search(line))]
    found["count"] = max(1, sum(counts))
    return found


def _made(
    tool: str, kind: str, head: str, kernel: str, thread: list[int], home: list[int],
    place: tuple[str, int], other: tuple[str, int], more: list[str],
) -> dict[str, Any]:  # fmt: skip
    who = ", ".join(
        words
        for words in (
            f"kernel {kernel}" if kernel else "",
            f"block ({', '.join(map(str, home))})" if home else "",
            f"thread ({', '.join(map(str, thread))})" if thread else "",
        )
        if words
    )
    words = _table()[_KINDS[kind]["__shared__" in head]]
    said = head[:1].lower() + head[1:].rstrip(".")
    return finding(
        tool=tool,
        kind=kind,
        title=kind[:1].upper() + kind[1:],
        kernel=kernel,
        block=home,
        thread=thread,
        place=place,
        other=other,
        sentence="; ".join([f"{who}: {said}" if who else said, *more])[:500] + ".",
        cause=words.cause,
        hint=words.hint,
    )


def _says(block: _Block, word: str) -> bool:
    return any(word in line.lower() for line in (block.head, *block.lines))


def _without_address(text: str) -> str:
    """The text without addresses, which tell nothing and differ from run to run."""
    text = re.sub(r"\s*(?:at|to|by)? ?0x[0-9a-fA-F]+(?: \+ 0x[0-9a-fA-F]+)?", "", text).strip()
    return text[:1].lower() + text[1:]


def _where(lines: list[str], root: str) -> tuple[tuple[str, int], str]:
    """(the first frame with a source line, the kernel's name), the name from the last frame."""
    found, kernel = ("", 0), ""
    for line in lines:
        if "Host Frame" in line or "host backtrace" in line:
            break
        if match := _FRAME.match(line):
            place, name = _place(match["rest"], root)
            found, kernel = found if found[0] else place, name or kernel
    return found, kernel


def _place(text: str, root: str) -> tuple[tuple[str, int], str]:
    """((file, line), kernel) in "kernel(int*)+0x1a0 in /tree/src/a.cu:31", as far as they are
    there."""
    match = _FILE_FIRST.search(text) or _IN_FILE.search(text)
    if match is None:
        return ("", 0), _bare(re.split(r"\+0x| in ", text)[0])
    return (_below(match["file"], root), int(match["line"])), _bare(match["kernel"])


def _bare(name: str) -> str:
    """The bare name: `add_kernel` for "void ns::add_kernel<float>(long, const float *)"."""
    name = re.sub(r"\(anonymous namespace\)::|^\s*(?:void|at)\s+", "", name.strip())
    name = re.split(r"[(<]", name)[0].strip()
    last = name.rpartition("::")[2].split()
    return last[-1] if last and not last[-1].startswith("0x") else ""


def _below(path: str, root: str) -> str:
    """A path relative to `root`, if it is below it."""
    path = os.path.normpath(path.strip())
    for start in {os.path.normpath(root), os.path.realpath(root)}:
        if path.startswith(start + os.sep):
            return path[len(start) + 1 :]
    return path


def _indices(lines: list[str]) -> tuple[list[int], list[int]]:
    """(thread, block); [] for one that is not reported."""
    for line in lines:
        if match := _THREAD.search(line):
            numbers = [int(word) for word in match.groups()]
            return numbers[:3], numbers[3:]
    return [], []


def _triple(match: re.Match[str]) -> list[int]:
    return [int(word) for word in match.groups()]
