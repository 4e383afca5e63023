"""A kernel is launched, and never called like a function."""

from cuda_source.functions import find_functions
from cuda_source.kernel_facts import check_of
from cuda_source.kernel_starts import namespaces_of, starts
from cuda_source.tokens import Edit, text_of

# What stands before a statement that is a call.
BEFORE_STATEMENTS = (";", "{", "}", ")", "else", "do")
# Words before a name that is used, and not declared.
BEFORE_USES = ("return", "else", "do", "case", "throw", "sizeof")


def is_declared(tokens, i):
    """Whether a name may be declared where it stands, as something else than a kernel."""
    before = tokens.all[i - 1]
    return (before.kind == "word" and before.text not in BEFORE_USES) or before.text in "*&>"


def called_like_functions(tokens, functions):
    """Indices of the names in statements `kernel(...);`."""
    kernels = {function.name for function in functions if function.is_kernel}
    kernels -= {function.name for function in functions if not function.is_kernel}
    heads, found = {function.name_index for function in functions}, []
    for i, token in enumerate(tokens.all):
        if token.text not in kernels or i in heads:
            continue
        if is_declared(tokens, i):
            kernels.discard(token.text)
        close = tokens.match_forward(i + 1) if tokens.text(i + 1) == "(" else None
        if tokens.text(i - 1) in BEFORE_STATEMENTS and close and tokens.text(close + 1) == ";":
            found.append(i)
    return [i for i in found if tokens.text(i) in kernels]


def may_be_anothers(tokens, name):
    """Whether a `using` may bring in a function of that name from another namespace."""
    for i, token in enumerate(tokens.all):
        if token.text == "using":
            end = i + 1
            while tokens.text(end) not in ("", ";", "="):
                end += 1
            if tokens.text(i + 1) == "namespace" or tokens.text(end - 1) == name:
                return True
    return False


def can_be_asked(function):
    """Whether the compiler can be asked which arguments a kernel takes, see `probe`."""
    tokens = function.tokens
    inside = range(function.first, function.end or 0)
    is_plain = tokens.text(function.first) != "template" and function.brace is not None
    return is_plain and "#" not in text_of(tokens, inside[0], function.close)


def probe(function):
    """The edit that says before a kernel with what it can be called."""
    first = function.tokens.all[function.first].start
    text = "\tstruct emulator_takes_%d { ::std::true_type operator()(%s); "
    text += "::std::false_type operator()(...); }; "
    given = text_of(function.tokens, function.open + 1, function.close - 1)
    return Edit(first, first, text % (function.name_index, given))


def refused_call(tokens, i, function):
    """The edit behind a call that the compiler refuses if it means a kernel."""
    name, close = tokens.text(i), tokens.match_forward(i + 1)
    said = "kernel `%s` is called like a function; hint: %s<<<grid, block>>>(...)" % (name, name)
    asked = "%semulator_takes_%d()" % (namespaces_of(function), function.name_index)
    text = ', [](auto is_kernel) { static_assert(!decltype(is_kernel)::value, "%s"); }'
    text += "(decltype(%s(%s))())"
    text %= (said, asked, text_of(tokens, i + 2, close - 1))
    return Edit(tokens.all[close].end, tokens.all[close].end, text)


def refuse_direct_calls(tokens):
    """The edits by which `kernel(...);` does not compile, and kernels launch themselves.

    Another function of that name may be meant, of std or of a class. So the compiler is asked
    whether the kernel takes what the call gives. Of templates only the kernel itself can tell: one
    that no launch calls says so when it is called.
    """
    functions, edits, asked = find_functions(tokens), [], {}
    for i in called_like_functions(tokens, functions):
        name = tokens.text(i)
        named = [f for f in functions if f.name == name and can_be_asked(f)]
        if not may_be_anothers(tokens, name) and "#" not in text_of(tokens, i, i + 1):
            edits += [refused_call(tokens, i, f) for f in named if f.name_index < i]
            asked.update((f.name_index, f) for f in named)
    edits += [probe(function) for function in asked.values()]
    checks = {f.brace: check_of(f) for f in functions if f.is_kernel and f.brace is not None}
    return edits + starts(tokens, lambda brace: checks.get(brace, ""))
