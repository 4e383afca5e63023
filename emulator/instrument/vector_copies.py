"""Has the checked build see where a vector such as a float4 is copied from, and to.

clang checks the address that a reference gets, but not that of a struct which is copied. So what
may lie at a wrong address goes through emulator::whole, which takes a reference:

    float4 v = in4[i];                  float4 v = ::emulator::whole(in4[i]);
    *reinterpret_cast<float4*>(p) = v;  ::emulator::whole(*reinterpret_cast<float4*>(p)) = v;

A write through a variable, `out4[i] = v`, is not seen, since its type stands elsewhere.
"""

import re

from cuda_source.tokens import CLOSING, OPENING, Edit
from instrument.thread_ends import show_ends

VECTOR = re.compile(r"(u?(char|short|int|long|longlong)|float|double)[1-4]")


def show_copies(tokens):
    """Edits that put the copied vectors through emulator::whole, and those of thread_ends.py."""
    edits = show_ends(tokens)
    for i, token in enumerate(tokens.all):
        ends = None
        if VECTOR.fullmatch(token.text):
            ends = initial_value(tokens, i)
        elif token.text == "reinterpret_cast":
            ends = cast_in_use(tokens, i)
        if ends:
            start, end = tokens.all[ends[0]].start, tokens.all[ends[1]].end
            edits += [Edit(start, start, "::emulator::whole("), Edit(end, end, ")")]
    return edits


def initial_value(tokens, i):
    """The first and last token of what `float4 name = value;` begins with, or None."""
    first = i + 3
    if tokens.text(i + 2) != "=" or tokens.text(first) in ("{", "="):
        return None
    last = first
    while tokens.text(last) not in ("", ";", ",", *CLOSING):
        last = tokens.match_forward(last) if tokens.text(last) in OPENING else last
        if last is None:
            return None
        last += 1
    return (first, last - 1) if tokens.text(last) == ";" else None


def cast_in_use(tokens, i):
    """The ends of `*reinterpret_cast<float4*>(p)` or `reinterpret_cast<float4*>(p)[i]`, or None."""
    opening = i + 1
    while tokens.text(opening) not in ("(", ""):
        opening += 1
    target = [tokens.text(k) for k in range(i + 2, opening) if tokens.text(k) != "const"]
    if target[1:] != ["*", ">"] or not VECTOR.fullmatch(target[0]):
        return None
    close, first = tokens.match_forward(opening), i
    if close is None:
        return None
    if tokens.text(close + 1) == "[":
        close = tokens.match_forward(close + 1)
    elif tokens.text(i - 1) == "*":  # nobody multiplies with a pointer
        first = i - 1
    else:
        return None
    is_address = tokens.text(first - 1) == "&"
    return None if close is None or is_address else (first, close)
