"""Joins what the host and what the device see of a source that asks for __CUDA_ARCH__.

Functions of the device take the body that they have there; one for both gets both, and asks where
it runs. Functions that the device alone has are added, and those that it has not are taken away.
Whatever else differs is refused in words.
"""

from cuda_tokens import (
    OPENING,
    Edit,
    SourceError,
    Tokens,
    apply_edits,
    blank,
    quoted,
    without_prelude,
)
from functions import ATTRIBUTES, Function, declaration_start, segments
from kernel_facts import bounds_place

BOTH = "{ if (emulator_in_kernel) %s else %s }"


def merged(host, device, path):
    """The text of the host with the device's functions in it. Raises SourceError."""
    ours, theirs = (Tokens(without_prelude(text, path), path) for text in (host, device))
    if [token.text for token in ours.all] == [token.text for token in theirs.all]:
        return host
    mine, other = by_place(ours), by_place(theirs)
    edits = []
    for key, function in other.items():
        if function.end is None:
            continue
        if key not in mine:
            edits.append(added(ours, theirs, function.first, function.end))
        elif mine[key].end is not None:
            edits += changed(mine[key], function)
    edits += [removed(f) for key, f in mine.items() if key not in other and is_of_device(f)]
    edits += rest(ours, theirs, list(mine.values()), list(other.values()))
    return apply_edits(ours.source, edits)


def device_functions(tokens):
    """All functions of the device, also constructors, operators and those of `-> type`."""
    found = {}
    for i, token in enumerate(tokens.all):
        function = None
        if token.text in ("__global__", "__device__"):
            function = function_from(tokens, i)
        if function is not None:
            found.setdefault(function.name_index, function)
    return list(found.values())


def function_from(tokens, index):
    """The function that a __device__ belongs to, or None."""
    i, is_operator = index, False
    while tokens.text(i) not in ("", ";", "{", "}") and (is_operator or tokens.text(i) != "="):
        close = tokens.match_forward(i)
        if tokens.text(i) == "operator":
            is_operator = True
            i += 2 if tokens.text(i + 1) == "(" else 0  # operator()
        elif tokens.text(i) in OPENING and close is None:
            return None
        elif tokens.text(i) == "(" and tokens.text(i - 1) not in ATTRIBUTES:
            brace = body_behind(tokens, close + 1)
            if brace is not None and tokens.match_forward(brace) is None:
                return None
            return Function(tokens, declaration_start(tokens, index), i - 1, brace)
        elif close is not None and not is_operator:
            i = close
        i += 1
    return None


def body_behind(tokens, i):
    """Index of the brace of a body behind a function's parameters, or None."""
    initial = False  # whether this is a constructor's `: a(1), b{2}`
    while tokens.text(i) not in ("", ";", "=", "}", ")"):
        if tokens.text(i) == "{" and not (initial and tokens.all[i - 1].kind == "word"):
            return i
        initial = initial or tokens.text(i) == ":"
        if tokens.text(i) in OPENING:
            i = tokens.match_forward(i)
            if i is None:
                return None
        i += 1
    return None


def by_place(tokens):
    """The functions of the device, by file, line, name, and a number if all these agree."""
    found = {}
    for function in device_functions(tokens):
        file, line = tokens.place(tokens.all[function.name_index].start)
        count = 0
        while (file, line, function.name, count) in found:
            count += 1
        found[file, line, function.name, count] = function
    return found


def words_of(function):
    """The texts of a body's tokens."""
    return [function.tokens.text(i) for i in range(function.brace, function.end + 1)]


def head_of(function):
    """The texts of the tokens before a body, but for a kernel's bounds."""
    left_out = bounds_place(function)
    places = range(function.first, function.brace)
    return [function.tokens.text(i) for i in places if i not in left_out]


def differing(tokens, index):
    """The error that something is not the same on the device."""
    error = SourceError(0, "this differs between host and device (__CUDA_ARCH__); hint: "
                           "only bodies of functions may, on the emulated GPU")  # fmt: skip
    error.place = tokens.place(tokens.all[index].start)
    return error


def body_of(function, behind):
    """A body's text, with markers around it: `behind` is the place of what comes after."""
    tokens = function.tokens
    start, end = tokens.all[function.brace].start, tokens.all[function.end].end
    file, line = tokens.place(start)
    return "\n# %d %s\n%s\n# %d %s\n" % (
        line, quoted(file), tokens.source[start:end], behind[1], quoted(behind[0]))  # fmt: skip


def changed(function, device):
    """The edits that give a function the body that it has on the device."""
    if head_of(function) != head_of(device):
        raise differing(device.tokens, device.first)
    if words_of(function) == words_of(device):
        return []
    tokens = function.tokens
    start, end = tokens.all[function.brace].start, tokens.all[function.end].end
    behind = tokens.place(end)
    body = body_of(device, behind)
    if "__host__" in function.words:
        body = BOTH % (body, body_of(function, behind))
    return [Edit(start, end, body)]


def is_of_device(function):
    """Whether a function with a body is none of the host's."""
    return function.end is not None and "__host__" not in function.words


def removed(function):
    """The edit that takes away what the device does not see."""
    return blank(function.tokens, function.first, function.end)


def added(tokens, theirs, first, last):
    """The edit that adds a declaration, before what stands behind it in its file."""
    start, end = theirs.all[first].start, theirs.all[last].end
    file, line = theirs.place(start)
    for first, _ in segments(tokens):
        position = tokens.all[first].start
        there = tokens.place(position)
        if there[0] == file and there[1] > line:
            break
    else:
        position = len(tokens.source)
        there = tokens.place(position)
    text = "\n# %d %s\n%s\n# %d %s\n" % (
        line, quoted(file), theirs.source[start:end], there[1], quoted(there[0]))  # fmt: skip
    return Edit(position, position, text)


def rest(ours, theirs, mine, other):
    """The edits for assertions of the device's.

    Raises SourceError if a type, constant or variable is not the same on the device.
    """
    known, edits = {text for _, _, text in declarations(ours, mine)}, []
    for first, last, text in declarations(theirs, other):
        if text.startswith("static_assert "):
            edits += [] if text in known else [added(ours, theirs, first, last)]
        elif text not in known:
            raise differing(theirs, first)
    return edits


def declarations(tokens, functions):
    """(first, last, text) of each that is no function, without the bodies of functions."""
    bodies = {}
    for function in functions:
        if function.end is not None:
            bodies[function.brace] = function.end
    heads = {function.first for function in functions}
    for first, last in segments(tokens):
        if first in heads or is_function(tokens, first, last):
            continue
        words, i = [], first
        while i <= last:
            words.append(tokens.text(i))
            i = bodies.get(i, i) + 1
        yield first, last, " ".join(words)


def is_function(tokens, first, last):
    """Whether a declaration is a function's with a body, of the host."""
    words = {tokens.text(i) for i in range(first, min(first + 3, last))}
    if words & {"struct", "class", "union", "enum"}:
        return False
    for i in range(first, last):
        if tokens.text(i) == "=":
            return False
        if tokens.text(i) == "{":
            return True
    return False
