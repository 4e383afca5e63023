"""Warns of code that needs the lanes of a warp to go in step, and does not say so.

Before Volta a warp had one program counter, and the last steps of a sum were written so:

    volatile float* v = tile;
    v[t] += v[t + 32];
    v[t] += v[t + 16];        // of which lane 0 needs what lane 16 wrote in the line before

Since then it is undefined without `__syncwarp()` between the steps. Here a thread runs up to its
next barrier by itself, so that the sums are wrong. The compiler prints one warning for each
function. What counts: an element of an array by the thread's own index is computed from another
element of it, more than once or in a loop, with no barrier in between.
"""

import itertools
import re
from collections import namedtuple

from cuda_source.tokens import Edit

# `name[index] += ... name[read] ...;`: tokens first .. last, and the texts of both indices.
Step = namedtuple("Step", "first last name index read")

WARNING = (
    ' _Pragma("GCC warning \\"the lanes of a warp are not in step: %s[%s] is read by another '
    'lane; hint: __syncwarp() between reading and writing, and after it\\"") '
)
FEWEST = 3  # steps in a row that are taken for a warp's if the array is not volatile


def warn_of_lockstep(tokens, bodies):
    """The edits that make the compiler warn, for functions of the device by their braces."""
    edits = []
    for first, last in bodies:
        step = step_out_of_step(tokens, first, last)
        if step is not None:
            start = tokens.all[step.first].start
            edits.append(Edit(start, start, WARNING % (step.name, step.index)))
    return edits


def step_out_of_step(tokens, first, last):
    """The first step of a body that needs a warp in step, or None."""
    volatile = volatile_names(tokens, first, last)
    steps = [step for i in range(first, last) for step in [step_at(tokens, i, last)] if step]
    for number, step in enumerate(steps):
        row = [step]
        for following in steps[number + 1 :]:
            alike = following.name == step.name and following.index == step.index
            if not alike or has_barrier(tokens, row[-1].last, following.first):
                break
            row.append(following)
        if step.name in volatile:
            if len(row) > 1 or is_in_loop(tokens, first, step):
                return step
        elif len(row) >= FEWEST and are_halves(row):
            return step
    return None


def volatile_names(tokens, first, last):
    """The names that a function, its parameters among them, declares volatile."""
    start = first
    while start > 0 and tokens.text(start - 1) not in (";", "}"):
        start -= 1
    names = set()
    for i in range(start, last):
        if tokens.text(i) != "volatile":
            continue
        end = i
        while end < last and tokens.text(end) not in ("=", "[", ",", ")", ";", "{"):
            end += 1
        if tokens.all[end - 1].kind == "word" and end - 1 > i:
            names.add(tokens.text(end - 1))
    return names


def step_at(tokens, i, last):
    """The Step that begins with a token, or None."""
    if tokens.all[i].kind != "word":
        return None
    if tokens.text(i + 1) != "[" or tokens.text(i - 1) in (".", "->", "=", "&"):
        return None
    close = tokens.match_forward(i + 1)
    if close is None:
        return None
    sign, following = tokens.text(close + 1), tokens.text(close + 2)
    if not (sign == "=" and following != "=") and not (
        sign in tuple("+-*|&^") and following == "="
    ):
        return None
    end = close
    while end < last and tokens.text(end) != ";":
        end += 1
    index = text_of(tokens, i + 2, close)
    if not re.search(r"[A-Za-z_]", index):
        return None
    used = {tokens.text(k) for k in range(close + 1, end)}
    for k in range(start_of_value(tokens, i, used), end):
        if tokens.text(k) == tokens.text(i) and tokens.text(k + 1) == "[":
            inner = tokens.match_forward(k + 1)
            read = text_of(tokens, k + 2, inner) if inner else index
            if read != index:
                return Step(i, end, tokens.text(i), index, read)
    return None


def start_of_value(tokens, i, used):
    """Where the value of a statement begins: in the statement before, if that is for its sake."""
    first = i - 1
    while first > 0 and tokens.text(first - 1) not in (";", "{", "}"):
        first -= 1
    for k in range(first, i):
        is_named = tokens.all[k - 1].kind == "word" and tokens.text(k - 1) in used
        if tokens.text(k) == "=" and is_named and tokens.text(i - 1) == ";":
            return k
    return i


def text_of(tokens, first, end):
    """The tokens first .. end-1 as text."""
    return " ".join(tokens.text(i) for i in range(first, end))


def has_barrier(tokens, first, last):
    """Whether the lanes, or the threads, wait for each other between two tokens."""
    words = (tokens.text(i) for i in range(first, last + 1))
    return any(word.startswith("__sync") or word == "sync" for word in words)


def is_in_loop(tokens, first, step):
    """Whether a loop without a barrier, and whose counter is not the index, repeats a step."""
    for i in range(first, step.first):
        if tokens.text(i) not in ("for", "while") or tokens.text(i + 1) != "(":
            continue
        close = tokens.match_forward(i + 1)
        if close is None or close > step.first:
            continue
        end = end_of_statement(tokens, close + 1)
        head = {tokens.text(k) for k in range(i + 2, close)}
        counted = any(word in head for word in step.index.split() if word.isidentifier())
        if step.first < end and not counted and not has_barrier(tokens, close, end):
            return True
    return False


def end_of_statement(tokens, i):
    """Index of the token that ends the statement which begins at a token."""
    while tokens.text(i) not in (";", "{", ""):
        if tokens.text(i) == "(":
            i = tokens.match_forward(i) or i
        i += 1
    return (tokens.match_forward(i) or i) if tokens.text(i) == "{" else i


def are_halves(row):
    """Whether the distances of the steps are numbers, each half of the one before."""
    distances = []
    for step in row:
        match = re.fullmatch(re.escape(step.index) + r" [+^] (\d+)", step.read)
        if match is None:
            return False
        distances.append(int(match[1]))
    return all(before == 2 * after for before, after in itertools.pairwise(distances))
