"""Whether the host or the device runs a function, as its words say.

nvcc refuses a kernel that calls a function of the host, and a function of the host that calls one
of the device. Here both are functions of one CPU, and only the words tell them apart. Each body of
which they leave no doubt begins with a variable whose name says whose it is: by that
compiler_facts/calls.py knows it in what the compiler understood. The others have no such variable,
and may call and be called as they like.
"""

import re

from cuda_source.functions import ORDERED, PURE
from cuda_source.host_and_device import functions
from cuda_source.shared_variables import opens_namespace
from cuda_source.tokens import Edit

HOST, DEVICE = "host", "device"
MARK = " [[maybe_unused]] const char emulator_%s_%d = 0;"
_MARK = re.compile(r" \[\[maybe_unused\]\] const char emulator_[a-z]+_\d+ = 0;")
WORDS = {"__host__", "__device__", "__global__"}
# What stands behind the parameters of a function that is surely one.
BEHIND_PARAMETERS = ("{", ":", "const", "noexcept", "override", "final", "->", "volatile", "&")


class Body:
    """A function's body of which it is certain who runs it: `space` is one of the above."""

    hint = "declare it `__host__ __device__`"

    def __init__(self, function, name, space):
        self.space, self.brace, self.name = space, function.brace, name
        self.kind = "kernel" if function.is_kernel else "function"
        self.is_constexpr = "constexpr" in function.words
        self.has_lambdas_of_device = "__device__" in words_in(function)
        self.place = function.tokens.place(function.tokens.all[function.brace].start)


def bodies(tokens):
    """{number: Body} of the functions of which it is certain who runs them."""
    if not tokens.is_balanced:
        return {}
    found, listed, spaces = {}, list(functions(tokens)), {}
    for function in listed:
        spaces.setdefault(name_of(function), set()).add(said(function))
    for function in listed:
        name, space = name_of(function), space_of(function)
        if name and space and (is_in_class(function) or len(spaces[name]) == 1):
            found[function.name_index] = Body(function, name, space)
    return found


def marks(tokens, found):
    """The edits by which each body says who runs it."""
    edits = []
    for number, body in found.items():
        end = tokens.all[body.brace].end
        edits.append(Edit(end, end, MARK % (body.space, number)))
    return edits


def without_marks(text):
    """The text for people who read it."""
    return _MARK.sub("", text)


def name_of(function):
    """A function's name, also an operator's or a destructor's; None if it is not understood."""
    tokens, last = function.tokens, function.name_index
    for first in range(last, max(last - 4, -1), -1):
        if tokens.text(first) == "operator":
            is_type = tokens.all[last].kind == "word"
            words = [tokens.text(i) for i in range(first + 1, last + 1)]
            return "operator" + " " * is_type + "".join(words)
    if tokens.all[last].kind != "word":
        return None  # as of a specialisation
    return "~" * (tokens.text(last - 1) == "~") + tokens.text(last)


def said(function):
    """The words of a function that say who runs it."""
    text = function.tokens.text
    last = function.close if function.brace is None else function.brace
    return frozenset(text(i) for i in range(function.first, last)) & (WORDS | {"constexpr"})


def space_of(function):
    """Who runs a function, if its words leave no doubt."""
    text, words = function.tokens.text, said(function)
    if name_of(function) in PURE | ORDERED:
        return None  # a call may be of CUDA's own
    if function.brace is None or text(function.close + 1) not in BEHIND_PARAMETERS:
        return None
    if {"requires", "consteval"} & {*function.words, text(function.name_index)}:
        return None
    if not words & {"__device__", "__global__"}:
        return HOST
    return None if "__host__" in words | words_in(function) else DEVICE


def words_in(function):
    """What stands in a function's body."""
    return {function.tokens.text(i) for i in range(function.brace, function.end)}


def is_in_class(function):
    """Whether a body stands in its class, so that no other declaration adds a word to it."""
    brace = function.tokens.around[function.name_index]
    is_in_namespace = brace is None or opens_namespace(function.tokens, brace)
    return not is_in_namespace and "friend" not in function.words
