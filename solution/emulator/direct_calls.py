"""A kernel is launched, and never called like a function."""

from cuda_tokens import SourceError
from functions import find_functions
from kernel_facts import check_of
from launches import replaced

# What stands before a statement that is a call.
BEFORE_STATEMENTS = (";", "{", "}", ")", "else", "do")
# Words before a name that is used, and not declared.
BEFORE_USES = ("return", "else", "do", "case", "throw", "sizeof")


def is_declared(tokens, i):
    """Whether a name may be declared where it stands, as something else than a kernel."""
    before = tokens.all[i - 1]
    return (before.kind == "word" and before.text not in BEFORE_USES) or before.text in "*&>"


def called_like_a_function(tokens, functions):
    """Index of the name in a statement `kernel(...);`, or None."""
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
    return next((i for i in found if tokens.text(i) in kernels), None)


def may_be_anothers(tokens, name):
    """Whether a `using` may bring in a function of that name from another namespace."""
    for i, token in enumerate(tokens.all):
        if token.text == "using":
            end = next(k for k in range(i, len(tokens.all)) if tokens.text(k) in (";", "="))
            if tokens.text(i + 1) == "namespace" or tokens.text(end - 1) == name:
                return True
    return False


def refuse_direct_calls(tokens):
    """Raises SourceError for `kernel(...);`; and has kernels say so that a pointer led to.

    Where another namespace may have a function of that name, too, the kernel alone can tell.

    The edits put questions at the beginning of each kernel: whether a kernel runs at all, and
    whether its bounds allow this one. They take the place of its brace.
    """
    functions = find_functions(tokens)
    i = called_like_a_function(tokens, functions)
    if i is not None and not may_be_anothers(tokens, tokens.text(i)):
        said = "kernel `%s` is called like a function; hint: %s<<<grid, block>>>(...)"
        raise SourceError(tokens.all[i].start, said % (tokens.text(i), tokens.text(i)))
    question = "{ if (!emulator_in_kernel) return emulator_called_directly(__func__); "
    return [
        replaced(tokens, f.brace, f.brace, question + check_of(f))
        for f in functions if f.is_kernel and f.brace is not None
    ]  # fmt: skip
