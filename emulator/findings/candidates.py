"""Settles candidates: what the runtime noticed may be a fault or not, and only its lines tell."""

import functools
import re

from findings.kinds import CANDIDATES
from findings.sentences import Sources

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
    if finding.kind in ("different barriers", "barriers of two warps", "lanes missing"):
        return is_one_call(finding.at, finding.other.at)
    if finding.kind == "barrier not reached":
        # A thread that returned before the barrier is no fault; one that went past it is.
        at, other = in_kernel(finding), in_kernel(finding.other)
        return not (at and other and other.file == at.file and other.line > at.line)
    return False


def is_one_call(at, other):
    """Whether the compiler made two instructions of one call: line and column are the same."""
    return at == other and (at is None or at.column == other.column)


# `__shfl_down_sync(`, and what stands before it if its value is put aside.
SHUFFLE = re.compile(r"[\w:.]*shfl\w*\s*\(")
PUT_ASIDE = re.compile(r"(\w+)\s*=\s*$")
COMMENT = re.compile(r"//.*")
CONDITION = re.compile(r"\bif\s*\(([^;]*)|\?")
BEHIND = 4  # lines from the shuffle on in which its result is used or not


def is_discarded(place):
    """Whether all values that a line shuffles are put aside, then used only where other things
    allow it.

    other = __shfl_down_sync(mask, value, step);
    if (lane + step < lanes) value += other;
    """
    lines = read_source(place.file)[place.line - 1 :] if place else []
    lines = [COMMENT.sub("", line) for line in lines[:BEHIND]]
    shuffles = list(SHUFFLE.finditer(lines[0])) if lines else []
    return bool(shuffles) and all(is_used_on_condition("\n".join(lines), s) for s in shuffles)


def is_used_on_condition(text, shuffle):
    """Whether what follows a shuffle in the text uses its value only behind a condition."""
    match = PUT_ASIDE.search(text[: shuffle.start()])
    end = closing(text, shuffle.end())
    if match is None or not text[end:].lstrip().startswith(";"):
        return False  # the value is part of an expression
    use = re.search(r"\b%s\b" % match[1], text[end:])
    before = text[end : end + use.start()] if use else ""
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
