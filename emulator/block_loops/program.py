"""A program: what its functions may be turned into."""

import re

from block_loops.hidden_calls import Hidden
from block_loops.overloads import Overloads
from block_loops.strides import INTEGER
from cuda_source.functions import (
    BARRIER,
    CASTS,
    DIGRAPHS,
    INDICES,
    LOADS,
    OPERATORS,
    ORDERED,
    PURE,
    REFUSED,
    TAKE_KERNELS,
    call_name,
    find_functions,
    is_built_in,
    takes_values,
)
from cuda_source.host_and_device import DIFFERS, IN_KERNEL
from cuda_source.kernel_starts import namespaces_of
from cuda_source.shared_variables import is_file_scope
from cuda_source.statements import TYPE_WORDS, VECTORS, Parser
from cuda_source.waiting_loops import waiting_loops


def is_number_constant(variable):
    """Whether a constant is one number, and no array, address or object."""
    words = set(variable.specifiers) - {"const", "constexpr", "static"}
    is_one = variable.style == "=" and not variable.stars and variable.dimensions is None
    return is_one and words <= TYPE_WORDS


class Program:
    """A source with all that it includes, as tokens.

    `said` gets (kernel, how it runs, reason). `refused` has reasons by the numbers of functions
    whose second version the compiler did not take, `pinned` names of variables whose addresses it
    knows of. `believed` gets those, by number too, whose addresses nobody should have.
    """

    def __init__(self, tokens, refused=None, pinned=None):
        self.pinned, self.believed = pinned or {}, {}
        self.tokens, self.refused, self.said = tokens, refused or {}, []
        self.functions, self.constants = {}, set()
        self.whole_constants = set()  # those that are integers
        self.aliases = {}  # words of numbers' types, by names of typedefs
        self.specialised = set()  # names that follow `template <>`, and others of their heads
        for function in find_functions(tokens):
            self.functions.setdefault(function.name, []).append(function)
        self.places = {}  # indices of words
        for i, token in enumerate(tokens.all):
            if token.kind == "word":
                self.places.setdefault(token.text, []).append(i)
        self.read_specialised(tokens)
        self.read_aliases(tokens)
        self.overloads = Overloads(tokens, self.places)
        self.enumerators = set()
        self.read_constants(tokens)
        self.redefined = self.read_redefined(tokens)
        # A lambda's stands behind its parameters.
        self.has_mutable = any(tokens.text(i - 1) != ")" for i in self.places.get("mutable", ()))
        self.waiting = {loop.function for loop in waiting_loops(tokens)}
        self.problems = {}
        self.hidden = Hidden(self)

    def read_specialised(self, tokens):
        """Notes the names in the heads of specialisations."""
        for i in self.places.get("template", ()):
            if (tokens.text(i + 1), tokens.text(i + 2)) == ("<", ">"):
                while tokens.text(i) not in ("", ";", "{"):
                    self.specialised.add(tokens.text(i))
                    i += 1

    def read_aliases(self, tokens):
        """Notes `typedef float real;` and `using real = float;`. The compiler confirms each use."""
        self.references = set()  # types that are references
        self.unknown_types = set()  # other names of types, not numbers'
        for i, token in enumerate(tokens.all):
            if token.text == "typedef":
                last = Parser(tokens).semicolon(i, len(tokens.all))
                name, first = (last or i) - 1, i + 1
            elif token.text == "using" and tokens.text(i + 2) == "=":
                last, name, first = Parser(tokens).semicolon(i, len(tokens.all)), i + 1, i + 3
            else:
                continue
            end = name if token.text == "typedef" else last or first
            words = [tokens.text(k) for k in range(first, end)]
            if words[-1:] == ["&"]:
                self.references.add(tokens.text(name))
            if words and set(words) <= TYPE_WORDS - VECTORS:
                self.aliases[tokens.text(name)] = " ".join(words)
            else:
                self.unknown_types.add(tokens.text(name))

    def is_integer(self, variable):
        """Whether a variable's words, or what they stand for, are those of an integer."""
        return INTEGER.fullmatch(self.aliases.get(variable.type, variable.type)) is not None

    def returns_integer(self, name):
        """Whether all functions of a name say that they return an integer."""
        group = self.functions.get(name, [])
        words = [" ".join(w for w in f.words if w in TYPE_WORDS) for f in group]
        return bool(group) and all(map(INTEGER.fullmatch, words))

    def number_names(self, function):
        """Names of types that are believed to be numbers' in a function."""
        return function.type_names() | self.aliases.keys()

    def read_constants(self, tokens):
        """Notes `const int n`, `constexpr T n` and enumerators at file scope."""
        for i, token in enumerate(tokens.all):
            if token.text in ("const", "constexpr"):
                last = Parser(tokens).semicolon(i, len(tokens.all))
                found = [] if last is None else Parser(tokens).declaration(i, last)
                if found and is_file_scope(tokens, i) and "__shared__" not in found[0].specifiers:
                    found = [v for v in found if is_number_constant(v)]
                    self.constants |= {v.name for v in found}
                    self.whole_constants |= {v.name for v in found if INTEGER.fullmatch(v.type)}
            if token.text == "enum":
                self.read_enumerators(tokens, i)

    def read_enumerators(self, tokens, i):
        """Notes the constants of the `enum` at an index."""
        first = i
        while tokens.text(i) not in ("", ";", "{", ")"):
            i += 1
        close = tokens.match_forward(i) if tokens.text(i) == "{" else None
        names = {tokens.text(k) for k in range(first + 1, i)} | {tokens.text((close or i) + 1)}
        operands = self.overloads.types - {":", ";", "int", "unsigned", "char", "short"}
        is_told = names & operands or self.overloads.takes_any  # what + does is another matter
        for k in range(i, close or i):
            if tokens.text(k) in ("{", ",") and tokens.all[k + 1].kind == "word":
                self.enumerators.add(tokens.text(k + 1))
                if is_told:
                    continue
                self.constants.add(tokens.text(k + 1))
                self.whole_constants.add(tokens.text(k + 1))

    def read_redefined(self, tokens):
        """The names of mathematical functions that the program defines itself."""
        found, self.callable = set(), set()
        for i, token in enumerate(tokens.all):
            if token.text in PURE and tokens.text(i + 1) == "(":
                close = tokens.match_forward(i + 1)
                if close is None or tokens.text(close + 1) in ("{", "->", "noexcept", "const"):
                    found.add(token.text)
            elif token.text in PURE and tokens.text(i - 1) not in ("::", ".", "->"):
                if is_file_scope(tokens, i):  # an object that can be called
                    self.callable.add(token.text)
        return found | self.callable

    def problem(self, function):
        """Why a function cannot be called out of a loop, or None. A barrier is no reason."""
        if function not in self.problems:
            self.problems[function] = "it calls itself"
            refused = self.refused.get(self.number(function))
            self.problems[function] = refused or self.find_problem(function)
        return self.problems[function]

    def number(self, function):
        """A number that is a function's own, and stays so from one rewriting to the next."""
        return function.name_index

    def find_problem(self, function):
        """Why a function cannot get the index of its thread; None if it can."""
        if self.hidden.is_class:
            return "a class has functions that know their thread"
        if function.brace is None or function.parameters is None:
            return "its declaration"
        if "..." in function.words or any(
            function.tokens.text(i) == "..." or function.tokens.text(i) == "."
            for i in range(function.open, function.close)
        ):
            return "a variable number of arguments"
        if self.calls_by_default(function):
            return "a default argument that calls something"
        if self.has_pragma(function):
            return "a pragma"
        if function in self.waiting:
            return "a loop that may wait for other threads"
        for i in range(function.brace, function.end):
            found = self.token_problem(function, i)
            if found is not None:
                return found
        for i in range(function.open, function.end):
            if self.is_ours(function.tokens.text(i)):
                return "`%s`, as second versions name things" % function.tokens.text(i)
        return None

    @staticmethod
    def is_ours(word):
        """Whether a word may be the name of what a second version has beside the program's own."""
        return word.startswith("emulator_") and word not in (IN_KERNEL, DIFFERS)

    @staticmethod
    def calls_by_default(function):
        """Whether a function has a default argument with a call in it."""
        tokens, is_default = function.tokens, False
        for i in range(function.open + 1, function.close):
            is_default = is_default or tokens.text(i) == "="
            if is_default and tokens.text(i) == "(" and call_name(tokens, i) is not None:
                return True
        return False

    @staticmethod
    def has_pragma(function):
        """Whether a function's body has a pragma, other than `#pragma unroll`."""
        start, end = (function.tokens.all[i].start for i in (function.brace, function.end))
        text = function.tokens.source[start:end]
        return re.search(r"^[^\S\n]*#[^\S\n]*pragma(?![^\S\n]+(no)?unroll)", text, re.M) is not None

    def token_problem(self, function, i):
        """Why the token at an index keeps a function from running as loops; None if it does not."""
        tokens, word = function.tokens, function.tokens.text(i)
        if word in REFUSED and tokens.all[i].kind == "word":
            return word
        if word + tokens.text(i + 1) in DIGRAPHS and tokens.adjacent(i):
            return "a digraph"
        if word == "[" and tokens.all[i - 1].kind != "word" and tokens.text(i - 1) not in "])>":
            return "a lambda"
        if word == "(":
            return self.call_problem(function, i)
        # It may take const away, by which the compiler confirms what stays the same.
        if (word == "&" and tokens.text(i + 1) in (")", ">")) or word in self.references:
            return "a cast to a reference"
        if word in self.functions and tokens.text(i - 1) not in (".", "->"):
            if tokens.text(i + 1) not in ("(", "<") and not self.is_variable(function, i):
                return "the address of %s" % word
        return None

    @staticmethod
    def is_variable(function, i):
        """Whether a token's name is that of a local variable."""
        return any(variable.name == function.tokens.text(i) for variable in function.variables())

    def call_problem(self, function, i):
        """Why a call whose ( stands at an index keeps a function from running as loops; None if it
        does not, or if there is no call."""
        tokens = function.tokens
        if tokens.text(i - 1) in (")", "]"):
            return None if self.is_cast(function, i - 1) else "a call through a pointer"
        index = call_name(tokens, i)
        if index is None:
            return None
        name = tokens.text(index)
        if function.names_variable(index):
            return "a call through a variable"
        if name in function.template_names() - function.type_names():
            harmless = self.hidden.are_values_harmless()
            return None if harmless else "a call through a template's value"
        known = (PURE - self.functions.keys() - self.callable) | LOADS | ORDERED | TYPE_WORDS
        if name in known or name in CASTS or name in OPERATORS:
            return None
        if name == BARRIER and tokens.text(i + 1) == ")" and tokens.text(i + 2) == ";":
            return None if function.is_kernel else "a barrier in a device function"
        if name in function.template_names() and tokens.text(i - 2) in (";", "{", "}"):
            return "a declaration with brackets"  # T(x);
        if name in function.template_names() or self.is_constructed(function, index):
            return None
        is_known = name in self.functions and name not in self.specialised
        if not is_known or self.hidden.is_also_data(index):
            return "it calls %s, which is not known" % name
        return self.callee_problem(function, name)

    def callee_problem(self, function, name):
        """The same for one of the program's own functions, by its name."""
        called = self.functions[name]
        is_overloaded = len(called) > 1 or self.hidden.is_also_unmarked(name)
        if is_overloaded and not all(takes_values(other) for other in called):
            return "it calls %s, whose overloads may tell constants apart" % name
        for other in called:
            if self.problem(other) is not None:
                return "it calls %s: %s" % (name, self.problem(other))
            if self.knows_thread(other) and self.name_problem(name) is not None:
                return "it calls %s: %s" % (name, self.name_problem(name))
            if other.end is not None and other.end > function.first:
                return "it calls %s, which stands below" % name
        return None

    def is_constructed(self, function, index):
        """Whether a name before a ( is that of a variable that is declared there."""
        if any(v.style == "(" and v.initial[0] == index + 2 for v in function.variables()):
            return True
        # In a statement that is not understood.
        before, name = function.tokens.all[index - 1], function.tokens.text(index)
        is_word = before.kind == "word" and before.text not in (*OPERATORS, "case", "co_return")
        return is_word and name not in self.functions

    def is_cast(self, function, close):
        """Whether the parentheses that close at an index hold a type."""
        tokens = function.tokens
        if tokens.text(close) != ")":
            return False
        known = TYPE_WORDS | function.type_names() | {"const", "*", "&"}
        first = tokens.match_backward(close)
        if tokens.text(first + 1) in self.aliases and not self.is_variable(function, first + 1):
            return first + 2 == close
        if call_name(tokens, first) is not None and tokens.text(first - 1) in OPERATORS:
            return tokens.text(first - 1) in ("if", "for", "while")
        words = [tokens.text(k) for k in range(first + 1, close)]
        return bool(words) and all(word in known for word in words)

    def takes_unknown(self, function):
        """Whether a function calls one of the program's that may take a reference unseen."""
        for i in range(function.brace, function.end):
            for other in self.functions.get(function.tokens.text(i), []):
                names = self.number_names(other)
                known = all(p.is_reference or is_built_in(p, names) for p in other.parameters or ())
                if not known or function.tokens.text(i + 1) == "<":
                    return True
        return False

    def knows_thread(self, function, seen=()):
        """Whether a function, or what it calls, uses an index."""
        words = {function.tokens.text(i) for i in range(function.brace, function.end)}
        if words & set(INDICES):
            return True
        return any(self.name_knows_thread(name, (*seen, function)) for name in words)

    def name_knows_thread(self, name, seen=()):
        """Whether a device function of a name uses an index."""
        return any(
            other.brace is not None and not other.is_kernel and self.knows_thread(other, seen)
            for other in self.functions.get(name, [])
            if other not in seen
        )

    def is_ordered(self, first, last, tokens, seen=()):
        """Whether code has a call whose order among threads shows."""
        for i in range(first, last + 1):
            word = tokens.text(i)
            if word in ORDERED:
                return True
            for other in self.functions.get(word, []):
                if other.brace is None or other in seen:
                    continue
                if self.is_ordered(other.brace, other.end, other.tokens, (*seen, other)):
                    return True
        return False

    def name_problem(self, name):
        """Why a function cannot get an overload beside it, or None."""
        group = self.functions[name]
        if name in self.specialised:
            return "a specialisation"
        if any(function.brace is None for function in group):
            return "it is declared before"
        for function in group:
            if function.words[-1:] == ["::"]:
                return "it is a member"
            behind = range(function.close + 1, function.brace)
            if any(function.tokens.text(i) not in ("const", "noexcept") for i in behind):
                return "what stands behind its parameters"
            if not is_file_scope(function.tokens, function.first):
                return "it is a member"
            if function.is_kernel != group[0].is_kernel:
                return "a kernel and a function of one name"
        if len({namespaces_of(function) for function in group}) > 1:
            return "it stands in several namespaces"
        heads = {function.name_index for function in group}
        for i in self.places.get(name, ()):
            if i not in heads and not self.is_plain_use(self.tokens, i):
                return "its name is used as a value"
        return None

    def is_plain_use(self, tokens, i):
        """Whether an overload more does no harm where a name is used."""
        behind, before = tokens.text(i + 1), tokens.text(i - 1)
        if behind == "<":
            close = Parser(tokens).template_forward(i + 1)
            behind = tokens.text(close + 1) if close is not None else ""
        if behind in ("<<<", "(") or before in (".", "->"):
            return True
        return self.is_taken_argument(tokens, i)

    def is_taken_argument(self, tokens, i):
        """Whether a name is an argument of one of TAKE_KERNELS."""
        depth = 0
        while i > 0 and tokens.text(i) not in (";", "{", "}"):
            depth += (tokens.text(i) == ")") - (tokens.text(i) == "(")
            if depth < 0:
                return tokens.text(i - 1) in TAKE_KERNELS
            i -= 1
        return False
