"""Settles candidates: what the runtime noticed may be a fault or not, and only its lines tell."""

import functools
import re

from finding_words import CANDIDATES
from sentences import Sources

read_source = functools.lru_cache(maxsize=16)(Sources.read)


def in_kernel(access):
    """Where in the kernel itself an access is, or the call that leads to it."""
    return access.calls[-1] if access.calls else access.at


def is_innocent(finding):
    """Whether a candidate turns out, by its lines, to be none."""
    if finding.kind == "shuffle from an absent lane":
        return is_discarded(finding.at)
    if finding.other is None:
        return False  # no candidate: no thread could go on
    if finding.kind in ("different barriers", "lanes missing"):
        return finding.other.at == finding.at  # one call, of which the compiler made two
    if finding.kind == "barrier not reached":
        # A thread that returned before the barrier is no fault; one that went past it is.
        at, other = in_kernel(finding), in_kernel(finding.other)
        return not (at and other and other.file == at.file and other.line > at.line)
    return False


# `other = __shfl_down_sync(`; what follows is the arguments.
SHUFFLED = re.compile(r"(\w+)\s*=\s*[\w:.]*shfl\w*\s*\(")
CONDITION = re.compile(r"\bif\s*\(([^;]*)|\?")
BEHIND = 4  # lines from the shuffle on in which its result is used or not


def is_discarded(place):
    """Whether a shuffled value is put aside, then used only where other things allow it.

    other = __shfl_down_sync(mask, value, step);
    if (lane + step < lanes) value += other;
    """
    lines = read_source(place.file)[place.line - 1 :] if place else []
    text = "\n".join(lines[:BEHIND])
    match = SHUFFLED.search(lines[0]) if lines else None
    if match is None:
        return False
    end = closing(text, match.end())
    if not text[end:].lstrip().startswith(";"):
        return False  # the value is part of an expression
    named = re.compile(r"\b%s\b" % match[1])
    use = named.search(text, end)
    before = text[end : use.start()] if use else ""
    condition = CONDITION.search(before)
    return condition is not None and (condition[1] is None or is_closed(condition[1]))


def closing(text, start):
    """The position behind the bracket that closes the one before `start`."""
    depth = 1
    while depth and start < len(text):
        depth += (text[start] == "(") - (text[start] == ")")
        start += 1
    return start


def is_closed(condition):
    """Whether the bracket of an `if` is closed where the value is first named."""
    return condition.count(")") > condition.count("(")


def settled(findings):
    """The findings without what turns out to be none; candidates get their kinds."""
    atomics = {
        (finding.kernel, finding.at)
        for finding in findings
        if finding.kind == "atomic behind a read"
    }
    kept = []
    for finding in findings:
        if is_innocent(finding):
            continue
        if finding.kind.startswith("plain read") and (finding.kernel, finding.at) in atomics:
            continue  # the first read before a loop around atomicCAS
        finding.kind = CANDIDATES.get(finding.kind, finding.kind)
        if finding.kind is not None:
            kept.append(finding)
    return kept
