"""What a tool found wrong in a submission's kernels: its form, and the strict reading of it.

A finding explains a failure and decides nothing. It is a dict of plain values:

    tool       "checked build", or the tool of compute-sanitizer
    kind       as "race shared"; title: the same in a few words
    kernel     its name, "" for host code
    block, thread   indices [x, y, z] of an example, [] if there is none
    file, line      of the source, "" and 0 if unknown; other_file, other_line: of the other access
    sentence   who did what to which element
    cause, hint     where it often comes from, and what helps
    count      threads or times folded into it
    source     the line with its neighbours, numbered, the line itself marked with ">"
    text       all of it, for a reader
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from grader.base.printable import plain

#: Bytes and lines that are read of what a child wrote.
MAX_BYTES, MAX_LINES = 4 << 20, 4000
_MAX_LINE = 8 << 10
_MAX_TEXT = 500
_NEIGHBOURS = 2

#: What the checked build writes for each finding, by kind of value.
_TEXTS = ("kind", "kernel", "detail", "name", "space", "file", "module")
_NUMBERS = ("count", "size", "order", "offset", "line", "place")
_TRIPLES = ("grid", "block", "block_index", "thread_index")
_OBJECTS = ("launch", "at", "other", "memory", "allocated", "freed")


class Malformed(ValueError):
    """A child wrote something that is not in the agreed form."""


def read_file(descriptor: int) -> str:
    """The contents of a file that this process holds open and a child writes to, up to
    MAX_BYTES."""
    data = os.pread(descriptor, MAX_BYTES, 0)
    return data.decode("utf-8", "replace")


def read_entries(text: str) -> tuple[list[dict[str, Any]], int]:
    """(the entries that the checked build wrote, the number of malformed lines)."""
    entries, broken = [], 0
    lines = [line for line in text.splitlines() if line.strip()]
    for line in lines[:MAX_LINES]:
        try:
            entry = _entry(_json(line), 0)
            if "kind" not in entry:
                raise Malformed("it has no kind")
            entries.append(entry)
        except Malformed:
            broken += 1
    return entries, broken + max(0, len(lines) - MAX_LINES)


def _json(text: str, limit: int = _MAX_LINE) -> Any:
    try:
        if len(text) > limit:
            raise Malformed("it is too long")
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Malformed("it is no JSON") from error


def _entry(value: Any, depth: int) -> dict[str, Any]:
    """An entry with exactly the names and types that the checked build writes."""
    if type(value) is not dict or depth > 3:
        raise Malformed("it is no object")
    found: dict[str, Any] = {}
    for name, item in value.items():
        if item is None:
            continue
        if name in _TEXTS:
            found[name] = _text(item)
        elif name in _NUMBERS:
            found[name] = _number(item)
        elif name in _TRIPLES:
            found[name] = _triple(item)
        elif name in _OBJECTS:
            found[name] = _entry(item, depth + 1)
        elif name == "write":
            found[name] = item is True
    return found


def _text(value: Any) -> str:
    if type(value) is not str:
        raise Malformed("it is no text")
    return plain(value).replace("\n", " ")[:_MAX_TEXT]


def _number(value: Any) -> int:
    if type(value) is not int or abs(value) >= 1 << 63:
        raise Malformed("it is no number")
    return value


def _triple(value: Any) -> list[int]:
    if type(value) is not list or len(value) not in (0, 3):
        raise Malformed("it is no index")
    return [_number(item) for item in value]


def read_resolved(text: str, sources: Mapping[str, bytes]) -> tuple[list[dict[str, Any]], int]:
    """(the findings that resolve.py printed, the number of those that it left out).

    Args:
        text: all that it printed.
        sources: the files of the tree by name, for quotations.

    Raises:
        Malformed: it printed something else.
    """
    raw = _json(text.strip(), MAX_BYTES)
    if type(raw) is not dict or type(raw.get("found")) is not list:
        raise Malformed("it has no findings")
    return [_resolved(item, sources) for item in raw["found"]], _number(raw.get("more"))


def _resolved(raw: Any, sources: Mapping[str, bytes]) -> dict[str, Any]:
    if type(raw) is not dict:
        raise Malformed("it is no object")
    file, line = _place(raw.get("at"))
    other_file, other_line = _place(raw.get("other"))
    found = finding(
        tool="checked build",
        block=_triple(raw.get("block")),
        thread=_triple(raw.get("thread")),
        count=_number(raw.get("count")),
        **{name: _text(raw.get(name)) for name in ("kind", "title", "kernel", "sentence")},
        **{name: _text(raw.get(name)) for name in ("cause", "hint")},
        place=(file, line),
        other=(other_file, other_line),
    )
    return quoted(found, sources)


def _place(value: Any) -> tuple[str, int]:
    if value is None:
        return "", 0
    if type(value) is not list or len(value) != 2:
        raise Malformed("it is no place")
    return _text(value[0]), _number(value[1])


def finding(
    *,
    tool: str,
    kind: str,
    title: str,
    sentence: str,
    kernel: str = "",
    block: list[int] | None = None,
    thread: list[int] | None = None,
    place: tuple[str, int] = ("", 0),
    other: tuple[str, int] = ("", 0),
    cause: str = "",
    hint: str = "",
    count: int = 1,
) -> dict[str, Any]:
    """A finding; `quoted` adds the source and the text."""
    return {
        "tool": tool,
        "kind": kind,
        "title": title,
        "kernel": kernel,
        "block": block or [],
        "thread": thread or [],
        "file": place[0],
        "line": place[1],
        "other_file": other[0],
        "other_line": other[1],
        "sentence": sentence,
        "cause": cause,
        "hint": hint,
        "count": count,
        "source": [],
        "text": "",
    }


def place_of(found: Mapping[str, Any]) -> str:
    """`src/gpu_op.cu:31`, or ""."""
    return f"{found['file']}:{found['line']}" if found["file"] else ""


def quoted(found: dict[str, Any], sources: Mapping[str, bytes]) -> dict[str, Any]:
    """The finding with its text, and with the lines of its source if that is a file of the tree.
    Any other file, as one of this machine, is told by its name alone."""
    source = quote(sources, found["file"], found["line"])
    beside = quote(sources, found["other_file"], found["other_line"], around=0)
    for name in ("file", "other_file"):
        if found[name] not in sources:
            found = {**found, name: found[name].replace("\\", "/").rpartition("/")[2]}
    where = f": {place_of(found)}" if place_of(found) else ""
    lines = [found["title"] + where, found["sentence"], *(f"  {line}" for line in source)]
    other = found["other_file"], found["other_line"]
    if other[0] and other != (found["file"], found["line"]):
        lines += [f"the other access: {other[0]}:{other[1]}"]
        lines += [f"  {line}" for line in beside]
    lines += [found["cause"]] if found["cause"] else []
    lines += [f"hint: {found['hint']}"] if found["hint"] else []
    return {**found, "source": source, "text": "\n".join(lines)}


def quote(
    sources: Mapping[str, bytes], file: str, line: int, around: int = _NEIGHBOURS
) -> list[str]:
    """A line with its neighbours, numbered; [] if the tree has no such line. `sources` holds what
    may be shown, since a name in debug information may be that of any file."""
    lines = plain(sources.get(file, b"").decode("utf-8", "replace")).split("\n")
    if not 1 <= line <= len(lines) or not sources.get(file):
        return []
    numbers = range(max(1, line - around), min(len(lines), line + around) + 1)
    marked = [(">" if n == line else " ", n, lines[n - 1][:200]) for n in numbers]
    return [f"{mark} {n:4} | {text}".rstrip() for mark, n, text in marked]
