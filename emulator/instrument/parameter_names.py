"""Tells the checked build the names of a kernel's parameters, so that reports can say `out`."""

from cuda_source.functions import find_functions
from cuda_source.shared_variables import opens_namespace
from cuda_source.statements import QUALIFIERS, TYPE_WORDS
from cuda_source.tokens import OPENING, Edit

NAMES = ' static const ::emulator::ParameterNames emulator_parameters_%d("%s", "%s");'


def name_parameters(tokens):
    """Edits that define an emulator::ParameterNames behind each kernel, on its last line."""
    edits = []
    for function in find_functions(tokens):
        if function.is_kernel and function.end is not None and in_namespace(tokens, function.brace):
            position = tokens.all[function.end].end
            names = ",".join(names_of(tokens, function.open, function.close))
            text = NAMES % (len(edits) + 1, function.name, names)
            edits.append(Edit(position, position, text))
    return edits


def in_namespace(tokens, brace):
    """Whether a function's body stands in namespaces alone, in no class."""
    i = 0
    while i < brace:
        if tokens.text(i) == "{":
            close = tokens.match_forward(i)
            if close is None or close < brace:
                i = i if close is None else close
            elif not opens_namespace(tokens, i):
                return False
        i += 1
    return True


def names_of(tokens, opening, closing):
    """The names of the parameters between two brackets; "" for one without a name."""
    if closing == opening + 1 or (closing == opening + 2 and tokens.text(opening + 1) == "void"):
        return []
    names, first, depth, i = [], opening + 1, 0, opening + 1
    while i < closing:
        text = tokens.text(i)
        if text in OPENING:
            i = tokens.match_forward(i)
        depth += (text == "<") - (text == ">")
        if text == "," and depth == 0:
            names.append(name_of(tokens, first, i))
            first = i + 1
        i += 1
    return [*names, name_of(tokens, first, closing)]


def name_of(tokens, first, end):
    """The name of the parameter of the tokens first .. end-1, or ""."""
    i = first
    while i < end and tokens.text(i) not in ("=", "["):
        if tokens.text(i) == "(" and tokens.text(i + 1) in ("*", "&"):  # T (*name)[n]
            return tokens.text(i + 2) if tokens.all[i + 2].kind == "word" else ""
        i += 1
    last, before = tokens.all[i - 1], [tokens.text(k) for k in range(first, i - 1)]
    if last.kind != "word" or last.text in TYPE_WORDS | QUALIFIERS:
        return ""
    if all(word in QUALIFIERS for word in before) or before[-1] == "::":
        return ""  # a type alone
    return last.text
