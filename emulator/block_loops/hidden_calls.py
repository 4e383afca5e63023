"""Who knows which thread runs, among functions whose calls are hard to see.

Constructors, operators and conversions are called without being named, and a function whose address
is taken by whoever has it. None of them gets the index of a thread handed, as second versions do.
"""

import re

from cuda_source.functions import INDICES, declaration_start
from cuda_source.shared_variables import is_file_scope
from cuda_source.statements import QUALIFIERS, TYPE_WORDS
from cuda_source.tokens import OPENING

# Functions for which threads wait.
WAITS = re.compile(r"__(syncthreads|syncwarp|shfl|ballot|any|all|match|reduce|activemask)\w*")
# Those of cooperative groups by which a group is had, or a thread's place in it.
GROUPS = frozenset(
    "this_thread_block this_grid this_thread this_cluster coalesced_threads tiled_partition "
    "binary_partition labeled_partition thread_rank thread_index block_index block_rank "
    "group_index meta_group_rank cooperative_groups".split()
)
CLASSES = ("struct", "class", "union")


def extent(function):
    """The last token of a function, also of one whose body was not found: a `;` or a `}`."""
    tokens = function.tokens
    if function.end is not None:
        return function.end
    i = function.close or function.open
    while tokens.text(i) not in ("", ";"):
        if tokens.text(i) in OPENING:
            close = tokens.match_forward(i)
            if close is None:
                break
            # `: a{1}, b{2} { ... }` is a constructor's
            if tokens.text(i) == "{" and tokens.text(close + 1) not in (",", "{"):
                return close
            i = close
        i += 1
    return i


class Hidden:
    """What a program's classes, operators and addresses of functions may hide."""

    def __init__(self, program):
        self.program, self.tokens = program, program.tokens
        self.told = self.telling()
        self.is_class = self.in_classes() or self.in_operators()

    def telling(self):
        """Words that say which thread runs, or have it wait; with functions that name one.

        A function of which no body is found may do anything.
        """
        told = set(INDICES) | GROUPS
        told |= {word.text for word in self.tokens.all if WAITS.match(word.text)}
        bodies, declared, defined = [], set(), set()
        for function in (f for group in self.program.functions.values() for f in group):
            if function.is_kernel:
                continue
            text = function.tokens.text
            last = extent(function)
            words = {text(i) for i in range(function.open, last + 1)}
            has_body = {text(i) for i in range(function.close or last, last)} & {"{", "="}
            (defined if has_body else declared).add(function.name)
            bodies.append((self.names(function, words), words))
        told |= declared - defined - TYPE_WORDS - QUALIFIERS
        before = None
        while before != len(told):
            before = len(told)
            told |= {name for names, words in bodies if words & told for name in names}
        return told

    def names(self, function, words):
        """The words by which a function may be called: all of its head, if that is not clear."""
        if function.end is not None and function.name not in ("__device__", "__host__"):
            return {function.name}
        head = set(function.words) | {function.name}
        is_in_brackets = self.tokens.text((function.close or 0) + 1) == "("  # int (f)(int x)
        if function.end is None and "{" in words and is_in_brackets:
            head |= words
        return {w for w in head if re.match(r"\w", w)} - TYPE_WORDS - QUALIFIERS - {
            "__device__", "__host__", "__forceinline__", "inline", "template", "class", "auto"
        }  # fmt: skip

    def in_classes(self):
        """Whether a class's own functions know which thread runs, or may be handed one that does.

        `template <class T>` and the kinds of `enum class` have no functions.
        """
        tokens, handed = self.tokens, self.told & self.values()
        for i, token in enumerate(tokens.all):
            if token.text not in (*CLASSES, "operator") or tokens.text(i - 1) in ("<", ","):
                continue
            if token.text == "class" and is_template_of_template(tokens, i):
                continue
            brace = i
            while tokens.text(brace) not in ("", ";", "{", "}", ")"):
                brace = tokens.match_forward(brace) or brace  # alignas(16), or parameters
                brace += 1
            close = tokens.match_forward(brace) if tokens.text(brace) == "{" else None
            words = {tokens.text(k) for k in range(brace, close or brace)}
            if words & self.told or (handed and "(" in words):
                return True
        return False

    def in_operators(self):
        """Whether an operator is declared whose body stands nowhere."""
        tokens, declared, defined = self.tokens, set(), set()
        for i in self.program.places.get("operator", ()):
            first = i + 1
            if tokens.text(first) == "(":
                first += 2
            while tokens.text(first) not in ("", "(", ";"):
                first += 1
            signs = tuple(tokens.text(k) for k in range(i + 1, first))
            start = declaration_start(tokens, i)
            if "__device__" not in {tokens.text(k) for k in range(start, i)}:
                continue
            last = tokens.match_forward(first)
            while last is not None and tokens.text(last) not in ("", ";", "{", "="):
                last += 1
            if last is not None:
                (declared if tokens.text(last) == ";" else defined).add(signs)
        return bool(declared - defined)

    def values(self):
        """The device functions that are named where they are not called."""
        tokens, found = self.tokens, set()
        for name, group in self.program.functions.items():
            heads = {function.name_index for function in group}
            for i in self.program.places.get(name, ()):
                if group[0].is_kernel or i in heads or tokens.text(i - 1) in (".", "->"):
                    continue
                if not self.program.is_plain_use(tokens, i):
                    found.add(name)
        return found

    def are_values_harmless(self):
        """Whether functions whose addresses are taken may run out of a loop, whoever calls them."""
        program = self.program
        functions = [f for name in self.values() for f in program.functions[name]]
        return all(
            f.end is not None and f.name not in self.told and program.problem(f) is None
            and not program.is_ordered(f.brace, f.end, f.tokens)
            for f in functions
        )  # fmt: skip

    def is_also_unmarked(self, name):
        """Whether a function of a name is declared without __device__."""
        tokens = self.tokens
        heads = {function.name_index for function in self.program.functions[name]}
        return any(
            tokens.text(i + 1) == "(" and i not in heads and not is_inside(tokens, i)
            and (is_file_scope(tokens, i) or is_in_class(tokens, i))
            for i in self.program.places.get(name, ())
        )  # fmt: skip

    def is_also_data(self, i):
        """Whether the function's name at an index may be a variable's: of a namespace, or of a
        class if it is qualified."""
        tokens, name, sign = self.tokens, self.tokens.text(i), self.tokens.text(i - 1)
        for k in self.program.places.get(name, ()):
            before, behind = tokens.text(k - 1), tokens.text(k + 1)
            is_after_type = tokens.all[k - 1].kind == "word" or before in ("*", "&", ">", ",")
            if behind in ("(", "<", "<<<", "::") or not is_after_type or is_inside(tokens, k):
                continue
            if sign not in (".", "->") and is_file_scope(tokens, k):
                return True
            if sign in (".", "->", "::") and is_in_class(tokens, k):
                return True
        return False


def is_template_of_template(tokens, i):
    """Whether a `class` is a parameter's, as in `template <template <class> class Op, class T>`."""
    ends = (",", ">", "=", ".")
    return tokens.text(i - 1) == ">" and {tokens.text(i + 1), tokens.text(i + 2)} & {*ends} != set()


def is_in_class(tokens, i):
    """Whether the braces around a token are a class's."""
    brace = tokens.around[i]
    first = declaration_start(tokens, brace) if brace else 0
    return brace is not None and any(tokens.text(k) in CLASSES for k in range(first, brace))


def is_inside(tokens, i):
    """Whether a token stands in brackets, as a parameter does."""
    while i >= 0 and tokens.text(i) not in (";", "{", "}"):
        if tokens.text(i) in (")", "]"):
            i = tokens.match_backward(i) or i
        elif tokens.text(i) in ("(", "["):
            return True
        i -= 1
    return False
