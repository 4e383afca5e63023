"""Reads what the checked build of the emulated GPU wrote: findings and traces, as JSON lines.

A finding is something that a kernel or the host did wrong. Some are only candidates until the
lines in question are known, and a compiler may make two instructions of one line of source: both
are settled here.
"""

import dataclasses
import json
from typing import Optional

from finding_words import WORDS
from places import Place, Places

DEFAULTS = {
    "count": 1,
    "kernel": None,
    "launch": None,
    "grid": None,
    "block": None,
    "at": None,
    "block_index": None,
    "thread_index": None,
    "size": 0,
    "write": False,
    "other": None,
    "memory": None,
    "detail": None,
    "order": 0,
}


class BrokenInput(Exception):
    """The file of findings is not as it should be; the message says where."""


@dataclasses.dataclass
class Access:
    """One of the two accesses of a race, or where a thread was instead."""

    at: Optional[Place]
    write: bool
    block_index: Optional[tuple]
    thread_index: Optional[tuple]


@dataclasses.dataclass
class Memory:
    """The buffer that was accessed, `offset` bytes from its start."""

    name: Optional[str]
    space: str  # global, shared, constant or host
    size: int
    offset: int
    allocated: Optional[Place]
    freed: Optional[Place]


@dataclasses.dataclass
class Finding:
    """One finding; `count` threads or times are folded into it."""

    kind: str
    count: int
    kernel: Optional[str]
    launch: Optional[Place]
    grid: Optional[tuple]
    block: Optional[tuple]
    at: Optional[Place]
    block_index: Optional[tuple]
    thread_index: Optional[tuple]
    size: int
    write: bool
    other: Optional[Access]
    memory: Optional[Memory]
    detail: Optional[str]
    order: int
    site: tuple = ()  # tells apart what has no known place

    @property
    def is_advice(self):
        """Whether it is correct, but slow."""
        return self.kind.startswith("advice")

    @property
    def title(self):
        """What it is, in a few words."""
        return WORDS[self.kind].title


@dataclasses.dataclass
class Trace:
    """An access of the thread that was asked about, with its value as bytes or None."""

    at: Optional[Place]
    write: bool
    size: int
    memory: Optional[Memory]
    value: Optional[bytes]


def read_lines(path):
    """The JSON objects of a file, one a line.

    Raises:
        BrokenInput: a line is no object, or has a kind that there is not.
    """
    found = []
    with open(path, encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                entry = json.loads(line)
            except ValueError:
                raise BrokenInput("%s:%d: this is no JSON" % (path, number)) from None
            if not isinstance(entry, dict):
                raise BrokenInput("%s:%d: this is no object" % (path, number))
            if not entry.get("trace") and entry.get("kind") not in WORDS:
                raise BrokenInput("%s:%d: unknown kind %r" % (path, number, entry.get("kind")))
            found.append((number, entry))
    return found


def triple(values):
    """(x, y, z), or None."""
    return tuple(values) if values else None


def memory_of(entry, places):
    """The buffer of an entry, or None."""
    if not entry:
        return None
    return Memory(
        entry.get("name"),
        entry.get("space", "global"),
        entry.get("size", 0),
        entry.get("offset", 0),
        places.find(entry.get("allocated")),
        places.find(entry.get("freed")),
    )


def access_of(entry, places):
    """The other access of an entry, or None."""
    if not entry:
        return None
    block, thread = triple(entry.get("block_index")), triple(entry.get("thread_index"))
    return Access(places.find(entry.get("at")), bool(entry.get("write")), block, thread)


def finding_of(entry, places):
    """A Finding from its JSON object."""
    values = {name: entry.get(name, default) for name, default in DEFAULTS.items()}
    for name in ("grid", "block", "block_index", "thread_index"):
        values[name] = triple(values[name])
    values["launch"], values["at"] = places.find(values["launch"]), places.find(values["at"])
    values["other"] = access_of(values["other"], places)
    values["memory"] = memory_of(values["memory"], places)
    site = entry.get("at") or (entry.get("memory") or {}).get("allocated") or {}
    return Finding(kind=entry["kind"], site=tuple(sorted(site.items())), **values)


def trace_of(entry, places):
    """A Trace from its JSON object."""
    value = bytes.fromhex(entry["value"]) if entry.get("value") else None
    memory = memory_of(entry.get("memory"), places)
    size = entry.get("size", 0)
    return Trace(places.find(entry.get("at")), bool(entry.get("write")), size, memory, value)


def parse(path, wanted, places):
    """The findings or the traces (`wanted` is a function from JSON) of a file."""
    found = []
    for number, entry in read_lines(path):
        if bool(entry.get("trace")) != (wanted is trace_of):
            continue
        try:
            found.append(wanted(entry, places))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise BrokenInput("%s:%d: %r is not as it should be" % (path, number, error)) from None
    return found


def is_innocent(finding):
    """Whether a candidate turns out, by its lines, to be none."""
    if finding.other is None:
        return False  # no candidate: no thread could go on
    other = finding.other.at
    if finding.kind == "different barriers":
        return other == finding.at  # one barrier, of which the compiler made two
    if finding.kind == "barrier not reached":
        # A thread that ended before the barrier is no fault; one that went past it is.
        at = finding.at
        return not (at and other and other.file == at.file and other.line > at.line)
    return False


def merged(findings):
    """The findings, without repetitions of a line."""
    found = {}
    for finding in sorted(findings, key=lambda finding: finding.order):
        other = finding.other.at if finding.other else None
        lines = finding.at or finding.site, other
        if finding.kind.startswith("race"):
            lines = frozenset(lines)  # whichever of the two came first
        key = finding.kind, finding.kernel, lines
        if key in found:
            found[key].count += finding.count
        else:
            found[key] = finding
    return list(found.values())


def read_report(path, places=None):
    """The findings of a file in the order they happened, settled and merged.

    Raises:
        OSError: the file can't be read.
        BrokenInput: it has no findings in it, but something else.
    """
    findings = parse(path, finding_of, places or Places())
    return merged([finding for finding in findings if not is_innocent(finding)])


def read_traces(path, places=None):
    """The traces of a file."""
    return parse(path, trace_of, places or Places())
