"""Reads what the checked build of the emulated GPU wrote: findings and traces, as JSON lines.

A finding is something that a kernel or the host did wrong. Some are only candidates until the
lines in question are known, and a compiler may make two instructions of one line of source: both
are settled here. A finding is a line of the file as soon as it is made; later lines say how often
it was made since, and one with a negative count takes it back.
"""

import dataclasses
import json
from typing import Optional

from findings.candidates import settled
from findings.discarded import function_of, is_perhaps_read
from findings.kinds import CANDIDATES, WORDS
from findings.source_lines import Place, Places

DEFAULTS = {
    "count": 1,
    "kernel": None,
    "launch": None,
    "grid": None,
    "block": None,
    "at": None,
    "calls": None,
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
    calls: list = dataclasses.field(default_factory=list)


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
    calls: list  # the places of the calls that led there, the innermost first; the kernel's last
    block_index: Optional[tuple]
    thread_index: Optional[tuple]
    size: int
    write: bool
    other: Optional[Access]
    memory: Optional[Memory]
    detail: Optional[str]
    order: int
    site: tuple = ()  # tells apart what has no known place
    also: tuple = ()  # other places of which the same is said

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
            if not entry.get("trace") and entry.get("kind") not in (*WORDS, *CANDIDATES):
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
    at, calls = chain_of(entry, places)
    return Access(at, bool(entry.get("write")), block, thread, calls)


def chain_of(entry, places):
    """The place of an entry, and those of the calls in the kernel that led there."""
    frames = places.frames(entry.get("at"), entry.get("calls") or ())
    return (frames[0] if frames else None), frames[1:]


def finding_of(entry, places):
    """A Finding from its JSON object."""
    values = {name: entry.get(name, default) for name, default in DEFAULTS.items()}
    for name in ("grid", "block", "block_index", "thread_index"):
        values[name] = triple(values[name])
    values["launch"] = places.find(values["launch"])
    values["at"], values["calls"] = chain_of(entry, places)
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


def is_earlier(one, other):
    """Whether the thread of a finding is a better example: of an earlier block, or in it."""
    if not one.thread_index or not other.thread_index:
        return False
    places = [
        (finding.block_index or ())[::-1] + finding.thread_index[::-1] for finding in (one, other)
    ]
    return places[0] < places[1]


def merged(findings):
    """The findings, without repetitions of a line, and without those that were taken back."""
    found = {}
    for finding in sorted(findings, key=lambda finding: finding.order):
        other = finding.other.at if finding.other else None
        lines = finding.at or finding.site, other
        if finding.kind.startswith("race"):
            lines = frozenset(lines)  # whichever of the two came first
        key = finding.kind, finding.kernel, lines, function_of(finding)
        first = found.setdefault(key, finding)
        if first is finding:
            continue
        count = first.count + finding.count
        if finding.order == first.order and is_earlier(finding, first):
            found[key] = finding
        found[key].count = count
    return [finding for finding in found.values() if finding.count > 0]


def read_report(path, places=None):
    """The findings of a file in the order they happened, settled and merged.

    Raises:
        OSError: the file can't be read.
        BrokenInput: it has no findings in it, but something else.
    """
    findings = parse(path, finding_of, places or Places())
    findings = [finding for finding in findings if not is_perhaps_read(finding)]
    return merged(settled(findings))


def read_traces(path, places=None):
    """The traces of a file."""
    return parse(path, trace_of, places or Places())
