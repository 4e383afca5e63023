"""Tells the checked build which of a program's variables are the host's, where no kernel may come.

    static float least = 0;     static float least = 0; static const ::emulator::HostVariable ...

A variable without `__device__` and its like, outside of functions and classes. What is constant is
left alone, since kernels may use its value, and so is all that is not plainly one variable.
"""

from cuda_source.shared_variables import opens_namespace
from cuda_source.tokens import OPENING, Edit

TOLD = (
    " static const ::emulator::HostVariable emulator_host_variable_%d"
    "(__builtin_addressof(%s), sizeof(%s));"
)
# A declaration with one of these is no variable, is constant, or not the host's alone.
OTHERS = frozenset(
    "__device__ __constant__ __managed__ __shared__ __global__ const constexpr constinit consteval "
    "extern inline thread_local __thread template using typedef friend operator struct class union "
    "enum namespace static_assert asm __asm__ concept requires return decltype".split()
)


def tell_host_variables(tokens):
    """Edits that define an emulator::HostVariable behind each variable of the host."""
    edits, first, i = [], 0, 0
    while i < len(tokens.all):
        text = tokens.text(i)
        close = tokens.match_forward(i) if text in OPENING else None
        if text == "{" and opens_namespace(tokens, i):
            first = i + 1
        elif text in OPENING and close is None:
            return edits
        elif text in OPENING:
            i = close
            # A body ends a definition, unless a `;` follows.
            if text == "{" and tokens.text(i + 1) != ";":
                first = i + 1
        elif text == "}":
            first = i + 1
        elif text == ";":
            name = name_of_variable(tokens, first, i)
            if name:
                position = tokens.all[i].end
                edits.append(Edit(position, position, TOLD % (len(edits) + 1, name, name)))
            first = i + 1
        i += 1
    return edits


def name_of_variable(tokens, first, last):
    """The name of the one variable that the tokens before a `;` declare, or ""."""
    name, words, templates, i = "", 0, 0, first
    while i < last and (templates or tokens.text(i) not in ("=", "[", "{")):
        token = tokens.all[i]
        if token.text in OTHERS or not (
            token.kind == "word" or token.text in ("::", "*", "<", ">")
        ):
            return ""
        templates += (token.text == "<") - (token.text == ">")
        if token.kind == "word" and not templates:
            name, words = token.text, words + 1
        i += 1
    if words < 2 or templates or tokens.text(i - 1) != name or tokens.text(i - 2) == "::":
        return ""
    return name if is_one(tokens, i, last) else ""


def is_one(tokens, i, last):
    """Whether no `,` stands behind a name, outside of brackets, and nothing that makes it
    constant, or the device's."""
    while i < last:
        if tokens.text(i) == "," or tokens.text(i) in OTHERS:
            return False
        i = (tokens.match_forward(i) or i) + 1 if tokens.text(i) in OPENING else i + 1
    return True
