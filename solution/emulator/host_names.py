"""A kernel can use neither functions nor variables of the host: what nvcc refuses is refused here.

Only what is certain: names of the program's own files at file scope, which nothing marks as the
device's, used in a kernel or device function that declares no such name itself. Constants are not
variables: nvcc takes their values.
"""

from cuda_tokens import Edit
from functions import find_functions, segments
from shared_variables import is_file_scope
from statements import Parser

# Marks of what the device may use, and beginnings of what declares neither function nor variable.
OF_DEVICE = frozenset("__device__ __global__ __constant__ __managed__ __shared__ constexpr".split())
SKIPPED = frozenset(
    "typedef using template namespace struct class union enum static_assert friend asm".split()
)
BEFORE_VALUES = ("return", "else", "do", "case", "throw", "goto")
UNEVALUATED = ("sizeof", "decltype", "alignof", "noexcept")
FUNCTION = (
    "a function of the host, which a kernel cannot call; hint: write __device__ before it, or "
    "__host__ __device__"
)
VARIABLE = (
    "a variable of the host, which a kernel cannot use; hint: pass it as a parameter, make it "
    "const, or declare it __device__ or __constant__"
)


def refuse_host_names(tokens):
    """The edits that make the compiler refuse names of the host in code of the device."""
    host = host_names(tokens)
    edits = []
    for function in find_functions(tokens) if host else ():
        if function.brace is None or "__host__" in function.words:
            continue
        if not is_file_scope(tokens, function.first):  # a class may have such a name, too
            continue
        places = range(function.first, function.end)
        hidden = {
            tokens.text(i) for i in places if tokens.text(i) in host and declares(function, i)
        }
        for i in range(function.brace, function.end):
            name = tokens.text(i)
            if name in host and name not in hidden and is_use(tokens, i, host[name] is FUNCTION):
                text = ' _Pragma("GCC error \\"`%s` is %s\\"") ' % (name, host[name])
                edits.append(Edit(tokens.all[i].start, tokens.all[i].start, text))
    return edits


def declares(function, i):
    """Whether a name at an index may be declared there; in doubt it is."""
    tokens, text = function.tokens, function.tokens.text
    before = text(i - 1)
    if tokens.all[i - 1].kind == "word":
        return before not in BEFORE_VALUES
    if before in ("*", "&"):
        first = i - 1
        while text(first) in ("*", "&"):
            first -= 1
        return is_type_at(function, first)
    if before == ",":
        return text(i + 1) in ("=", ";", "[", ",")
    if before == ">":
        return tokens.template_backward(i - 1) is not None
    return before == "{" or (before == "[" and text(i - 2) in ("auto", "&"))


def is_type_at(function, i):
    """Whether the word before a * or & may be a type, and no number."""
    tokens, before = function.tokens, function.tokens.text(i - 1)
    if tokens.all[i].kind != "word":
        return tokens.text(i) == ">"
    if before in ("(", ","):
        return i < function.close or tokens.text(i - 2) == "for"
    return before in (";", "{", "}", "<", "::") or tokens.all[i - 1].kind == "word"


def is_use(tokens, i, is_function):
    """Whether a name at an index is evaluated, and is no member's or another namespace's."""
    if tokens.all[i].kind != "word" or tokens.text(i - 1) in (".", "->", "::"):
        return False
    if is_function:
        return tokens.text(i + 1) == "("
    before = tokens.text(i - 2) if tokens.text(i - 1) == "(" else tokens.text(i - 1)
    return tokens.text(i + 1) not in ("(", "::", "<") and before not in UNEVALUATED


def host_names(tokens):
    """What the names are that only the host has: FUNCTION or VARIABLE."""
    found, shared = {}, set()
    for first, last in segments(tokens):
        if tokens.text(first) == "extern" and tokens.all[first + 1].kind == "text":
            first += 2
        head = head_of(tokens, first, last)
        words = {tokens.text(i) for i in head}
        if words & OF_DEVICE or words & SKIPPED or not head or tokens.around[first] is not None:
            shared |= words
            continue
        behind = head[-1] + 1
        if tokens.text(behind) == "(":
            if len(head) > 1 and tokens.all[head[-1]].kind == "word":
                found[tokens.text(head[-1])] = FUNCTION
        else:
            found.update((name, VARIABLE) for name in variables_of(tokens, first, last))
    return {name: what for name, what in found.items() if name not in shared}


def head_of(tokens, first, last):
    """The indices of a declaration's tokens up to its first bracket, `=` or `;`."""
    i = first
    while i <= last and tokens.text(i) not in ("(", "[", "{", "=", ";", ","):
        i += 1
    return range(first, i)


def variables_of(tokens, first, last):
    """The names of variables that a declaration at file scope declares, but for constants."""
    end = Parser(tokens).semicolon(first, len(tokens.all))
    words = [tokens.text(i) for i in head_of(tokens, first, last)]
    found = [] if end is None else Parser(tokens).declaration(first, end)
    if "operator" in words or "const" in words[words.index("*") if "*" in words else 0 :]:
        return [v.name for v in found if v.dimensions and not v.stars]
    return [v.name for v in found]
