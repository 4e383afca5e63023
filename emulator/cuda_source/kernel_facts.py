"""What a kernel says of itself: `__launch_bounds__`, and its static shared variables.

A launch of more threads than the bounds allow is refused, see emulator/launch.h. What
cudaFuncGetAttributes tells is noted behind each kernel that is no template; a shared variable
counts if its type names nothing that the kernel declares.
"""

from itertools import pairwise

from cuda_source.functions import find_functions
from cuda_source.kernel_starts import template_end, template_parameters
from cuda_source.launches import split_arguments
from cuda_source.shared_variables import find_declaration, find_declarators, is_file_scope
from cuda_source.statements import QUALIFIERS, TYPE_WORDS
from cuda_source.tokens import Edit, blank, text_of

BOUNDS = "__launch_bounds__"
# What may stand before a name that is declared, beside words.
DECLARING = ("*", "&", ",", "{", ">")


def bounds_place(function):
    """The indices of the tokens of a function's bounds."""
    tokens = function.tokens
    for i in range(function.first, function.name_index):
        if tokens.text(i) == BOUNDS and tokens.match_forward(i + 1):
            return range(i, tokens.match_forward(i + 1) + 1)
    return range(0)


def told_bounds(function):
    """The indices of the tokens of a kernel's bounds, on it or on a declaration before it."""
    place, tokens = bounds_place(function), function.tokens
    for other in [] if place or function.parameters is None else find_functions(tokens):
        alike = other.name == function.name and other.brace is None and other.is_kernel
        if alike and types_of(other) == types_of(function):
            place = place or bounds_place(other)
    return place


def types_of(function):
    """The types of a function's parameters, as words, if they are understood."""
    if function.parameters is None:
        return None
    return [(p.specifiers, p.stars, p.dimensions is None) for p in function.parameters]


def bounds_text(function):
    """What computes the most threads of a block that a kernel's bounds allow; or None."""
    place = told_bounds(function)
    if len(place) < 4:
        return None
    text = text_of(function.tokens, place[2], place[-2])
    return None if "#" in text else "::emulator::first_of(%s)" % text


def is_hidden(function):
    """Whether a kernel's parameter may hide a name in its bounds."""
    tokens, place = function.tokens, told_bounds(function)
    hidden = {tokens.text(i) for i in range(function.open, function.close)} - TYPE_WORDS
    if function.parameters is not None:
        hidden = {parameter.name for parameter in function.parameters}
    return bool(hidden & {tokens.text(i) for i in place[2:-1] if tokens.all[i].kind == "word"})


def bounds_of(function):
    """The most threads of a block that a kernel's bounds allow, as text; or None."""
    text = bounds_text(function)
    if text is None or not is_hidden(function):
        return text
    kinds = template_parameters(function)
    if any(kind.edits for kind in kinds):
        return None  # one without a name
    given = ", ".join(kind.given for kind in kinds)
    return "emulator_bounds_%d%s" % (function.name_index, "<%s>" % given if given else "")


def bounds_before(function):
    """The edit, in a list, that computes bounds before a kernel whose parameters hide a name."""
    bounds, tokens = bounds_of(function), function.tokens
    if bounds is None or not bounds.startswith("emulator_bounds_"):
        return []
    head, first = "static", tokens.all[function.first].start
    if tokens.text(function.first) == "template":
        head = text_of(tokens, function.first, template_end(tokens, function.first + 1))
    text = "%s constexpr unsigned %s = %s; " % (head, bounds.split("<")[0], bounds_text(function))
    return [Edit(first, first, "\t" + text)]  # a tab, to stand before a second version


def check_of(function, result=""):
    """A statement that leaves a kernel which too many threads run, or nothing."""
    bounds = bounds_of(function)
    return "if (::emulator::are_too_many(%s)) return%s; " % (bounds, result) if bounds else ""


def declared_in(function):
    """Words that a kernel may declare, and more."""
    tokens = function.tokens
    return {
        tokens.text(i) for i in range(function.first, function.end)
        if tokens.all[i].kind == "word"
        and (tokens.all[i - 1].kind == "word" or tokens.text(i - 1) in DECLARING
             or is_in_brackets(tokens, i))
    } - TYPE_WORDS - QUALIFIERS  # fmt: skip


def is_in_brackets(tokens, i):
    """Whether a name stands as in `const int (n) = 4;`."""
    before = tokens.text(i - 2) != "sizeof" and tokens.all[i - 2].kind == "word"
    return before and tokens.text(i - 1) == "(" and tokens.text(i + 1) == ")"


def shared_sizes(function):
    """The sizes of a kernel's static shared variables, as far as names outside of it tell them."""
    tokens, sizes, declared = function.tokens, [], declared_in(function)
    places = range(function.brace, function.end)
    for place in (i for i in places if tokens.text(i) == "__shared__"):
        first, last = find_declaration(tokens, place)
        names = find_declarators(tokens, first, last) if last is not None else []
        words = [tokens.text(i) for i in range(first, names[0][0])] if names else ["extern"]
        type_words = [word for word in words if word not in ("__shared__", "static")]
        if {"extern", "("} & set(type_words) or declared & set(type_words):
            continue
        for name, behind in names:
            while tokens.text(behind - 1) != "]" and behind > name + 1:
                behind -= 1  # attributes
            extents = [tokens.text(i) for i in range(name + 1, behind)]
            text = text_of(tokens, name + 1, behind - 1)
            if not declared & set(extents) and "#" not in text:
                sizes.append("sizeof(%s%s)" % (" ".join(type_words), text))
    return sizes


def pointer_to(function):
    """A kernel's address, whatever overloads it has; None if that cannot be said for certain."""
    tokens, parameters = function.tokens, []
    for first, last in split_arguments(tokens, function.open, function.close):
        words = [tokens.text(i) for i in range(first, last + 1)]
        end = first + words.index("=") - 1 if "=" in words else last
        parameters.append(text_of(tokens, first, end))
    text = "static_cast<void (*)(%s)>(%s)" % (", ".join(parameters), function.name)
    inside = {tokens.text(i) for i in range(function.open, function.close)}
    return None if "#" in text or inside & {"<", "::"} else text


def note_of(function):
    """A declaration behind a kernel that notes its address and its facts, or nothing."""
    words = [function.tokens.text(i) for i in range(function.brace, function.end)]
    is_plain = "using" not in words and ("auto", "[") not in pairwise(words)
    bounds, sizes = bounds_of(function), shared_sizes(function) if is_plain else []
    pointer = pointer_to(function)
    if pointer is None or not (bounds or sizes):
        return ""
    facts = "%s, %s, %s" % (pointer, bounds or 0, " + ".join(sizes) or 0)
    text = " [[maybe_unused]] static const bool emulator_noted_%d = ::emulator::note_kernel(%s);"
    return text % (function.name_index, facts)


def can_be_named(function):
    """Whether a kernel is no template, and stands where its address can be taken behind it."""
    tokens, first = function.tokens, function.first
    plain = tokens.text(first) != "template" and tokens.text(first - 1) in ("", ";", "{", "}")
    return plain and is_file_scope(tokens, first)


def tell_facts(tokens):
    """The edits that take bounds away, check them, and note facts for cudaFuncGetAttributes."""
    functions, edits = find_functions(tokens), []
    for i, token in enumerate(tokens.all):
        if token.text == BOUNDS and tokens.match_forward(i + 1):
            edits.append(blank(tokens, i, tokens.match_forward(i + 1)))
    for function in functions:
        if function.is_kernel and function.brace is not None:
            edits += bounds_before(function)
        if function.is_kernel and function.brace is not None and can_be_named(function):
            end = tokens.all[function.end].end
            edits.append(Edit(end, end, note_of(function)))
    return [edit for edit in edits if edit.text]
