"""Joins what the host and what the device see of a source that asks for __CUDA_ARCH__.

Functions of the device take the body that they have there; one for both gets both, and asks where
it runs. So do what constructors begin their members with. Functions that the device alone has are
added, those that it has not are taken away, and the host's stay. Whatever else differs is refused
in words.
"""

from cuda_source.functions import ATTRIBUTES, Function, declaration_start, segments
from cuda_source.kernel_facts import bounds_place
from cuda_source.kernel_starts import pieces
from cuda_source.shared_variables import opens_namespace
from cuda_source.tokens import (
    OPENING,
    Edit,
    SourceError,
    Tokens,
    apply_edits,
    blank,
    quoted,
    without_prelude,
)

IN_KERNEL, DIFFERS = "emulator_in_kernel", "emulator_differs_between_host_and_device"
# In a function that may be asked for a constant, which cannot be both.
IN_KERNEL_CONSTANT = "(__builtin_is_constant_evaluated() ? %s() : %s)" % (DIFFERS, IN_KERNEL)
# What a function is compiled to is the same with and without them.
MEANINGLESS = ("inline", "__inline__", "__inline", "__forceinline__", "__noinline__")
NO_NAMES = (*ATTRIBUTES, "decltype", "explicit")  # what may stand before a `(`
CLASSES = {"struct", "class", "union"}
ACCESS = ("public", "private", "protected")


def merged(host, device, path):
    """The text of the host with the device's functions in it. Raises SourceError."""
    ours, theirs = (Tokens(without_prelude(text, path), path) for text in (host, device))
    if [token.text for token in ours.all] == [token.text for token in theirs.all]:
        return host
    mine, other = by_place(ours), by_place(theirs)
    edits = []
    for key, function in other.items():
        if function.end is None:
            edits += changed_defaults(mine[key], function) if key in mine else []
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
    """The function that a __device__ belongs to, or None; a lambda's body is in another's."""
    i, is_operator = index, False
    if is_lambda(tokens, index):
        return None
    while tokens.text(i) not in ("", ";", "{", "}") and (is_operator or tokens.text(i) != "="):
        close = tokens.match_forward(i)
        if tokens.text(i) == "operator":
            is_operator = True
            i += 2 if tokens.text(i + 1) == "(" else 0  # operator()
        elif tokens.text(i) in OPENING and close is None:
            return None
        elif tokens.text(i) == "(" and tokens.text(i - 1) not in NO_NAMES:
            brace = body_behind(tokens, close + 1)
            if brace is not None and tokens.match_forward(brace) is None:
                return None
            return Function(tokens, declaration_start(tokens, index), i - 1, brace)
        elif close is not None and not is_operator:
            i = close
        i += 1
    return None


def is_lambda(tokens, index):
    """Whether the words of a lambda stand at an index, as in `[=] __host__ __device__ () {}`."""
    i = index - 1
    while tokens.text(i) in ("__host__", "__device__"):
        i -= 1
    return index < len(tokens.all) and tokens.text(i) == "]" and tokens.text(i - 1) != "]"


def body_behind(tokens, i):
    """Index of the brace of a body behind a function's parameters, or None."""
    initial = False  # whether this is a constructor's `: a(1), b{2}`
    while tokens.text(i) not in ("", ";", "=", "}", ")"):
        if tokens.text(i) == "{" and not (initial and tokens.text(i - 1) not in (")", "}")):
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


def colon_of(function):
    """Index of the `:` of a constructor's `: a(1), b{2}`, else that of the body's brace."""
    tokens, i = function.tokens, function.close + 1
    while i < function.brace and tokens.text(i) != ":":
        i = (tokens.match_forward(i) or i) + 1
    return min(i, function.brace)


def initialisers(function):
    """(name, first, last) of what a constructor begins each member with, the brackets aside."""
    tokens, found, i = function.tokens, [], colon_of(function) + 1
    while i < function.brace:
        if tokens.text(i) in (",", "..."):
            i += 1
            continue
        first = i
        while tokens.match_forward(i) is None:
            i += 1
        close = tokens.match_forward(i)
        found.append((texts(tokens, first, i), i + 1, close - 1))
        i = close + 1
    return found


def texts(tokens, first, last):
    """The texts of tokens first .. last."""
    return [tokens.text(i) for i in range(first, last + 1)]


def head_of(function, without=()):
    """The texts of the tokens before a body that say what it is: neither a kernel's bounds, nor
    how it is to be called, nor what stands at the places of `without`."""
    left_out, text = set(bounds_place(function)), function.tokens.text
    left_out.update(*(range(first, last + 1) for first, last in without))
    end = function.close + 1 if function.brace is None else colon_of(function)
    places = range(function.first, end)
    return [text(i) for i in places if i not in left_out and text(i) not in MEANINGLESS]


def differing(tokens, index):
    """The error that something is not the same on the device."""
    error = SourceError(0, "this differs between host and device (__CUDA_ARCH__); hint: "
                           "only bodies of functions may, on the emulated GPU")  # fmt: skip
    error.place = tokens.place(tokens.all[index].start)
    return error


def placed(tokens, first, last, behind):
    """The text of tokens, with markers around it: `behind` is the place of what comes after."""
    start, end = tokens.all[first].start, tokens.all[last].end
    file, line = tokens.place(start)
    return "\n# %d %s\n%s\n# %d %s\n" % (
        line, quoted(file), tokens.source[start:end], behind[1], quoted(behind[0]))  # fmt: skip


def replaced(tokens, first, last, form, *parts):
    """The edit that puts parts, each (tokens, first, last), for some tokens."""
    start, end = tokens.all[first].start, tokens.all[last].end
    behind = tokens.place(end)
    return Edit(start, end, form % tuple(placed(*part, behind) for part in parts))


def changed(function, device):
    """The edits that give a function what it does on the device."""
    edits = changed_defaults(function, device)
    ours, theirs = ((one.tokens, colon_of(one), one.end) for one in (function, device))
    if texts(*ours) == texts(*theirs):
        return edits
    if "__host__" not in function.words:
        return [*edits, replaced(*ours, "%s", theirs)]
    asked = asked_by(function)
    bodies = [(one.tokens, one.brace, one.end) for one in (device, function)]
    edits += changed_initialisers(function, device, asked)
    if texts(*bodies[0]) != texts(*bodies[1]):
        edits.append(replaced(*bodies[1], "{ if (%s) %%s else %%s }" % asked, *bodies))
    return edits


def asked_by(function):
    """What a function asks to know where it runs."""
    return IN_KERNEL_CONSTANT if "constexpr" in function.words else IN_KERNEL


def defaults(function):
    """(first, last) of the default argument of each parameter, or None where there is none."""
    tokens, found = function.tokens, []
    for first, last in pieces(tokens, function.open + 1, function.close - 1):
        place, depth, i = None, 0, first
        while i <= last and place is None:
            depth += (tokens.text(i) == "<") - (tokens.text(i) == ">")
            place = (i + 1, last) if depth == 0 and tokens.text(i) == "=" else None
            i = (tokens.match_forward(i) or i) + 1
        found.append(place)
    return found


def changed_defaults(function, device):
    """The edits by which a function has the default arguments of the host and of the device.

    Raises SourceError if its head differs otherwise. A kernel is launched by the host alone.
    """
    if head_of(function) == head_of(device):
        return []
    both = (function, defaults(function)), (device, defaults(device))
    heads = [head_of(one, [place for place in places if place]) for one, places in both]
    if heads[0] != heads[1]:
        raise differing(device.tokens, device.first)
    form = "%s ? (%%s) : (%%s)" % asked_by(function) if "__host__" in function.words else "(%s)"
    edits = []
    for mine, other in zip(both[0][1], both[1][1]):
        if mine is None or function.is_kernel:
            continue
        parts = [(device.tokens, *other), (function.tokens, *mine)]
        if texts(*parts[0]) != texts(*parts[1]):
            if "{" in (device.tokens.text(other[0]), function.tokens.text(mine[0])):
                raise differing(device.tokens, other[0])
            edits.append(replaced(*parts[1], form, *parts[: form.count("%s")]))
    return edits


def changed_initialisers(function, device, asked):
    """The edits by which a constructor of both begins each member with what it is there."""
    ours, theirs = initialisers(function), initialisers(device)
    if [name for name, _, _ in ours] != [name for name, _, _ in theirs]:
        raise differing(device.tokens, colon_of(device))
    edits = []
    for (_, *mine), (_, *other) in zip(ours, theirs):
        both = [(device.tokens, *other), (function.tokens, *mine)]
        words = [texts(*part) for part in both]
        if words[0] == words[1]:
            continue
        if not all(words) or any(is_list(*part) for part in both):
            raise differing(device.tokens, other[0])
        edits.append(replaced(*both[1], "%s ? (%%s) : (%%s)" % asked, *both))
    return edits


def is_list(tokens, first, last):
    """Whether tokens are several expressions, with commas between them."""
    i = first
    while i <= last:
        if tokens.text(i) in (",", "..."):
            return True
        i = (tokens.match_forward(i) or i) + 1
    return False


def is_of_device(function):
    """Whether a function with a body is none of the host's."""
    return function.end is not None and "__host__" not in function.words


def removed(function):
    """The edit that takes away what the device does not see."""
    return blank(function.tokens, function.first, function.end)


def added(tokens, theirs, first, last):
    """The edit that adds a declaration, before what stands behind it in its file."""
    file, line = theirs.place(theirs.all[first].start)
    for begin, _ in segments(tokens):
        position = tokens.all[begin].start
        there = tokens.place(position)
        if there[0] == file and there[1] > line:
            break
    else:
        position = len(tokens.source)
        there = tokens.place(position)
    return Edit(position, position, placed(theirs, first, last, there))


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
    """(first, last, text) of each that is no function, without what functions do, or begin with."""
    bodies = {colon_of(f): f.end for f in functions if f.end is not None}
    for function in functions:
        # From the `=` on, which is the same.
        bodies.update((place[0] - 1, place[1]) for place in defaults(function) if place)
    heads = {function.first for function in functions}
    for function in functions_of_host(tokens):
        heads.add(function.first)
        bodies[colon_of(function)] = function.end
    for first, last in segments(tokens):
        if first in heads:
            continue
        words, i = [], first
        while i <= last:
            words += [] if tokens.text(i) in MEANINGLESS else [tokens.text(i)]
            i = bodies.get(i, i) + 1
        yield first, last, " ".join(words)


def functions_of_host(tokens):
    """The functions with a body, also those of classes, that the device cannot call."""
    i = 0
    while i < len(tokens.all):
        i = behind_template(tokens, i)
        function = function_from(tokens, i)
        if function is None or function.brace is None:
            i = behind_declaration(tokens, i)
            continue
        i = function.end + 1
        if not {"__device__", "__global__", "constexpr"} & set(function.words):
            yield function


def behind_template(tokens, i):
    """Index behind a `template <...>` or a `public:`, or the same."""
    if tokens.text(i) in ACCESS and tokens.text(i + 1) == ":":
        return i + 2
    if tokens.text(i) != "template":
        return i
    depth, i = 1, i + 2
    while depth > 0 and tokens.text(i) not in ("", ";"):
        depth += (tokens.text(i) == "<") - (tokens.text(i) == ">")
        i = (tokens.match_forward(i) or i) + 1
    return i


def behind_declaration(tokens, i):
    """Index behind a declaration, or behind the `{` of a class or namespace."""
    words = set()
    while tokens.text(i) not in ("", ";", "}"):
        if tokens.text(i) == "{":
            is_class = words & CLASSES and not words & {"enum", "="}
            if is_class or opens_namespace(tokens, i):
                break
        words.add(tokens.text(i))
        i = (tokens.match_forward(i) or i) + 1
    return i + 1
