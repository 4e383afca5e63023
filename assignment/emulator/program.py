"""All sources of a program together: what their functions may be turned into."""

import re

from analysis import INTEGER
from functions import (
    BARRIER,
    CASTS,
    INDICES,
    LOADS,
    OPERATORS,
    ORDERED,
    PURE,
    REFUSED,
    TAKE_KERNELS,
    call_name,
    declares,
    find_functions,
)
from launches import launch_macros
from shared_variables import is_file_scope
from statements import TYPE_WORDS, Parser


def is_number_constant(variable):
    """Whether a constant is one value, and no array or address."""
    return variable.style == "=" and not variable.stars and variable.dimensions is None


class Program:
    """All sources of a program: the file to rewrite, and the local headers it includes.

    `sources` has their tokens by their paths; `said` gets (kernel, how it runs, reason).
    """

    def __init__(self, sources):
        self.sources, self.said = sources, []
        self.functions, self.macros, self.constants = {}, {}, set()
        self.whole_constants = set()  # those that are integers
        self.specialised = set()  # names that follow `template <>`, and others of their heads
        for tokens in sources.values():
            for function in find_functions(tokens):
                self.functions.setdefault(function.name, []).append(function)
            self.read_specialised(tokens)
            self.read_macros(tokens)
            self.read_constants(tokens)
        self.hidden_indices = any(
            self.uses_indices_in_classes(tokens) for tokens in sources.values()
        )
        self.problems = {}

    def read_specialised(self, tokens):
        for i in range(len(tokens.all)):
            if [tokens.text(i), tokens.text(i + 1), tokens.text(i + 2)] == ["template", "<", ">"]:
                while tokens.text(i) not in ("", ";", "{"):
                    self.specialised.add(tokens.text(i))
                    i += 1

    def read_macros(self, tokens):
        """Notes the tokens of each macro; twice defined ones count as both."""
        for i, token in enumerate(tokens.all):
            if tokens.is_defined(i):
                last = i
                while tokens.together(last + 1, i):
                    last += 1
                self.macros.setdefault(token.text, []).append((tokens, i + 1, last))

    def read_constants(self, tokens):
        """Notes `const int n`, `constexpr T n` and enumerators at file scope."""
        for i, token in enumerate(tokens.all):
            if token.text in ("const", "constexpr") and token.directive is None:
                last = Parser(tokens).semicolon(i, len(tokens.all))
                found = [] if last is None else Parser(tokens).declaration(i, last)
                if found and is_file_scope(tokens, i) and "__shared__" not in found[0].specifiers:
                    found = [v for v in found if is_number_constant(v)]
                    self.constants |= {v.name for v in found}
                    self.whole_constants |= {v.name for v in found if INTEGER.fullmatch(v.type)}
            if token.text == "enum":
                self.read_enumerators(tokens, i)

    def read_enumerators(self, tokens, i):
        while tokens.text(i) not in ("", ";", "{", ")"):
            i += 1
        close = tokens.match_forward(i) if tokens.text(i) == "{" else None
        for k in range(i, close or i):
            if tokens.text(k) in ("{", ",") and tokens.all[k + 1].kind == "word":
                self.constants.add(tokens.text(k + 1))
                self.whole_constants.add(tokens.text(k + 1))

    def uses_indices_in_classes(self, tokens):
        """Whether a class's own functions, whose calls are hard to see, know which thread runs."""
        for i, token in enumerate(tokens.all):
            if token.text in ("struct", "class", "union", "operator"):
                brace = i
                while tokens.text(brace) not in ("", ";", "{", "}"):
                    brace += 1
                close = tokens.match_forward(brace) if tokens.text(brace) == "{" else None
                told = INDICES + (BARRIER,)
                if any(tokens.text(k) in told for k in range(brace, close or brace)):
                    return True
        return False

    def macro_words(self, name, seen=()):
        """All words that a macro may become."""
        for tokens, first, last in self.macros.get(name, []):
            for i in range(first, last + 1):
                word = tokens.text(i)
                yield word
                if word in self.macros and word not in seen:
                    yield from self.macro_words(word, (*seen, name))

    def macro_problem(self, name):
        """Why a function that uses a macro is run thread by thread, or None."""
        for word in self.macro_words(name):
            known = word in TYPE_WORDS or word in PURE or word in INDICES or word in self.macros
            known = known or word in ("x", "y", "z", "w", "static_cast", "const", "sizeof")
            known = known or word in self.constants or not re.match(r"[^\W\d]\w*$", word)
            if not known and not self.is_macro_parameter(name, word):
                return "the macro %s" % name
        return None

    def is_macro_parameter(self, name, word):
        """Whether a word is a parameter of a macro."""
        for tokens, first, _ in self.macros[name]:
            behind = tokens.all[first - 1].end
            if first < len(tokens.all) and tokens.all[first].start == behind:
                close = tokens.match_forward(first) if tokens.text(first) == "(" else None
                if close and any(tokens.text(k) == word for k in range(first, close)):
                    return True
        return False

    def problem(self, function):
        """Why a function cannot be called out of a loop, or None. A barrier is no reason."""
        if function not in self.problems:
            self.problems[function] = "it calls itself"
            self.problems[function] = self.find_problem(function)
        return self.problems[function]

    def find_problem(self, function):
        if self.hidden_indices:
            return "a class has functions that know their thread"
        if function.brace is None or function.parameters is None:
            return "its declaration"
        if "..." in function.words or any(
            function.tokens.text(i) == "..." or function.tokens.text(i) == "."
            for i in range(function.open, function.close)
        ):
            return "a variable number of arguments"
        if self.has_directive(function):
            return "a preprocessor's line"
        for i in range(function.brace, function.end):
            found = self.token_problem(function, i)
            if found is not None:
                return found
        return None

    @staticmethod
    def has_directive(function):
        """Whether a function's body has a line of the preprocessor, other than `#pragma unroll`."""
        start, end = (function.tokens.all[i].start for i in (function.brace, function.end))
        text = function.tokens.source[start:end]
        directive = r"^[^\S\n]*#[^\S\n]*(?!pragma[^\S\n]+unroll)"
        return re.search(directive, text, re.MULTILINE) is not None

    def token_problem(self, function, i):
        tokens, word = function.tokens, function.tokens.text(i)
        if tokens.all[i].directive is not None:
            return "a preprocessor's line"
        if word in REFUSED:
            return word
        if word == "[" and tokens.all[i - 1].kind != "word" and tokens.text(i - 1) not in "])>":
            return "a lambda"
        if word in self.macros:
            return self.macro_problem(word)
        if word == "(":
            return self.call_problem(function, i)
        if word in self.functions and tokens.text(i - 1) not in (".", "->"):
            if tokens.text(i + 1) not in ("(", "<") and not self.is_variable(function, i):
                return "the address of %s" % word
        return None

    def is_variable(self, function, i):
        """Whether a token names a local variable, or declares it."""
        function.parse()
        variables = list(function.parameters)
        for statement in function.block.walk():
            if statement.kind == "declaration":
                variables += statement.variables
        return any(variable.name == function.tokens.text(i) for variable in variables)

    def call_problem(self, function, i):
        tokens = function.tokens
        if tokens.text(i - 1) in (")", "]"):
            return None if self.is_cast(function, i - 1) else "a call through a pointer"
        index = call_name(tokens, i)
        if index is None:
            return None
        name = tokens.text(index)
        known = PURE | LOADS | ORDERED | TYPE_WORDS
        if name in known or name in CASTS or name in OPERATORS or name in self.macros:
            return None
        if name == BARRIER and tokens.text(i + 1) == ")" and tokens.text(i + 2) == ";":
            return None if function.is_kernel else "a barrier in a device function"
        if name in function.template_names() or self.is_constructed(function, index):
            return None
        called = self.functions.get(name)
        if called is None or name in self.specialised:
            return "it calls %s, which is not known" % name
        for other in called:
            if self.problem(other) is not None:
                return "it calls %s: %s" % (name, self.problem(other))
            if self.knows_thread(other) and self.name_problem(name) is not None:
                return "it calls %s: %s" % (name, self.name_problem(name))
            if other.tokens is tokens and other.end is not None and other.end > function.first:
                return "it calls %s, which stands below" % name
        return None

    def is_constructed(self, function, index):
        """Whether a name before a ( is that of a variable that is declared there."""
        before = function.tokens.all[index - 1]
        word_before = before.kind == "word" and before.text not in OPERATORS + ("else", "do")
        return word_before or (before.text in ("*", ">") and self.is_variable(function, index))

    def is_cast(self, function, close):
        """Whether the parentheses that close at an index hold a type."""
        tokens = function.tokens
        if tokens.text(close) != ")":
            return False
        known = TYPE_WORDS | function.template_names() | {"const", "*", "&"}
        first = tokens.match_backward(close)
        if call_name(tokens, first) is not None and tokens.text(first - 1) in OPERATORS:
            return tokens.text(first - 1) in ("if", "for", "while")
        words = [tokens.text(k) for k in range(first + 1, close)]
        return bool(words) and all(word in known for word in words)

    def knows_thread(self, function, seen=()):
        """Whether a function, or what it calls, uses an index."""
        words = {function.tokens.text(i) for i in range(function.brace, function.end)}
        for name in list(words & set(self.macros)):
            words |= set(self.macro_words(name))
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
            if not is_file_scope(function.tokens, function.first):
                return "it is a member"
            if function.is_kernel != group[0].is_kernel:
                return "a kernel and a function of one name"
        for tokens in self.sources.values():
            heads = {f.name_index for f in group if f.tokens is tokens}
            for i, token in enumerate(tokens.all):
                if token.text == name and i not in heads and not self.is_plain_use(tokens, i):
                    return "its name is used as a value"
        return None

    def is_plain_use(self, tokens, i):
        """Whether an overload more does no harm where a name is used."""
        behind, before = tokens.text(i + 1), tokens.text(i - 1)
        if behind == "<":
            close = Parser(tokens).template_forward(i + 1)
            behind = tokens.text(close + 1) if close is not None else ""
        if behind in ("<<<", "(") or before in (".", "->") or tokens.is_defined(i):
            return True
        if tokens.all[i].directive is not None:
            return False
        return self.is_taken_argument(tokens, i) or declares(tokens, i)

    def is_taken_argument(self, tokens, i):
        """Whether a name is an argument of a macro that launches, or of TAKE_KERNELS."""
        depth = 0
        while i > 0 and tokens.text(i) not in (";", "{", "}"):
            depth += (tokens.text(i) == ")") - (tokens.text(i) == "(")
            if depth < 0:
                macros = {
                    name for source in self.sources.values() for name in launch_macros(source)
                }
                name = tokens.text(i - 1)
                return name in macros or name in TAKE_KERNELS
            i -= 1
        return False
