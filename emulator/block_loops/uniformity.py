"""What is the same for all threads of a block, and what each thread has of its own.

A value is *uniform* if it is made of nothing but parameters that are never assigned, constants,
blockIdx, blockDim, gridDim, and local variables made of these. It is *recomputable* if it may
also use threadIdx, but no memory: then it may be computed again wherever it is needed.
"""

import re
from collections import namedtuple

from block_loops.uses import Uses
from cuda_source.functions import INDICES, PURE, takes_values
from cuda_source.statements import TYPE_WORDS, VECTORS, Parser

CONSTANTS = frozenset("true false nullptr warpSize".split())
# Names of types in casts, and what stands between them.
NUMBER = re.compile(
    r"(0[xX][\da-fA-F']+|[\d'.]+([eE][+-]?\d+)?)[uUlLfF]*|\.\d+([eE][+-]?\d+)?[fFlL]?"
)
# Signs of an expression that changes nothing, given that no two of them make `++` or `+=`.
HARMLESS = frozenset("( ) + - * / % < > <= >= ! ~ & | ^ ? : , . << =".split())


# An assignment of tokens first .. last; value is the range of what is assigned, None for ++.
Step = namedtuple("Step", "first last variable value")


class Uniformity(Uses):
    """The questions about the expressions of one function."""

    def __init__(self, program, function):
        super().__init__(program, function)
        self.local_names = {variable.name for variable in self.variables}
        self.constants = function.template_names() | program.constants | CONSTANTS
        self.uniform = set()  # variables; block_variables.py fills it
        self.recomputable = set()
        self.claims = {}  # what is believed of names from outside, for emulator/claims.h

    # Expressions

    def is_uniform(self, part):
        """Whether the expression in a range is uniform."""
        return part is not None and self.is_pure(part, self.uniform, False)

    def is_recomputable(self, part):
        """Whether the expression in a range is recomputable."""
        return part is not None and self.is_pure(part, self.uniform | self.recomputable, True)

    def is_pure(self, part, variables, with_thread):
        """Whether an expression is made of numbers, changes nothing and reads no memory.

        Its variables must be among `variables`. All of its names are numbers, so its operators are
        the language's own; what is believed of names is added to `claims`.
        """
        claims, i = {}, part[0]
        while i <= part[1]:
            behind = self.pure_at(i, variables, with_thread, claims)
            if behind is None or behind > part[1] + 1:
                return False
            i = behind
        self.claims.update(claims)
        return True

    def pure_at(self, i, variables, with_thread, claims):
        """Index behind the name, number or sign at an index; None if it is not pure."""
        token = self.tokens.all[i]
        if i in self.owner:
            return self.pure_variable(i, variables, claims)
        if token.kind == "number":
            return i + 1 if NUMBER.fullmatch(token.text) else None
        if token.kind == "sign":
            return i + 1 if token.text in HARMLESS and self.is_harmless(i) else None
        if token.kind == "word":
            return self.pure_word(i, with_thread, claims)
        return None

    def pure_variable(self, i, variables, claims):
        """The same for a variable, or a member of a parameter."""
        variable, behind = self.owner[i], i + 1
        if variable not in variables or (variable.dimensions and not variable.is_parameter):
            return None
        if variable.is_shadowed:  # where it is computed again, its name may be another's
            return None
        while self.text(behind) == "." and self.tokens.all[behind + 1].kind == "word":
            behind += 2
        if self.text(behind) in ("(", "[", "->", ".", "->*"):
            return None
        if behind == i + 1:
            return None if self.is_changed(variable, i) else behind
        if not variable.is_parameter or self.is_changed_behind(behind):
            return None
        name = "".join(self.text(k) for k in range(i, behind))
        claims["EMULATOR_IS_MEMBER(%s)" % name] = True
        return behind

    def is_harmless(self, i):
        """Whether a sign is no part of ++, --, an assignment, or of what reads memory."""
        text, following = self.text(i), self.text(i + 1)
        if text in ("+", "-") and following == text and self.tokens.adjacent(i):
            return False
        if text == ">" and following == ">=" and self.tokens.adjacent(i):
            return False
        if text == "=":
            return self.is_comparison(i)
        if text == "&" and not self.is_operand_before(i):
            return self.text(i - 1) == "&" and self.tokens.adjacent(i - 1)
        return text != "*" or self.is_operand_before(i)

    def is_comparison(self, i):
        """Whether an = is part of == or != (<= and >= are tokens)."""
        if self.text(i - 1) in ("=", "!") and self.tokens.adjacent(i - 1):
            return True
        return self.text(i + 1) == "=" and self.tokens.adjacent(i)

    def pure_word(self, i, with_thread, claims):
        """The same as pure_at for a word."""
        word = self.text(i)
        if word in INDICES:
            is_index = self.text(i + 1) == "." and self.text(i + 2) in ("x", "y", "z")
            return i + 3 if is_index and (with_thread or word != "threadIdx") else None
        if word in ("static_cast", "reinterpret_cast"):
            return self.pure_type(i + 2, self.skip_cast(i) - 1, claims)
        if word in TYPE_WORDS:
            return self.pure_type(i, i, claims)
        if word in ("const", "sizeof", "unsigned", "signed"):
            return i + 1
        if word in self.program.number_names(self.function):
            claims["EMULATOR_IS_NUMBER(%s)" % word] = True
            return i + 1
        if word in self.constants and word not in self.local_names:
            if word not in CONSTANTS:
                claims["EMULATOR_IS_CONSTANT(%s)" % word] = True
            # An operator of the program may be for an enum.
            if word in self.function.template_names() and self.program.overloads.types:
                claims["EMULATOR_NUMBER(%s)" % word] = True
            return i + 1
        if self.is_mathematics(word):
            return i + 1 if self.text(i + 1) == "(" else None
        return i + 1 if with_thread and self.returned(i) is not None else None

    def is_mathematics(self, word):
        """Whether a name is a function's of mathematics, and of none of the program's."""
        program = self.program
        return word in PURE and word not in program.functions and word not in program.redefined

    def pure_type(self, first, last, claims):
        """Index behind the words of a number's type, or of a pointer's, and what ends them."""
        names = self.program.number_names(self.function)
        for k in range(first, last + 1):
            word = self.text(k)
            if word in names:
                claims["EMULATOR_IS_NUMBER(%s)" % word] = True
            elif word not in TYPE_WORDS and word not in ("const", "*"):
                return None
        behind = last + 1
        is_pointer = self.text(last) == "*" or self.text(behind) == "*"
        if not is_pointer and self.text(last) in VECTORS:
            return None
        return behind + 1 if self.text(behind) == ">" and self.text(first - 1) == "<" else behind

    def returned(self, i):
        """Analysis and range of what a call at an index returns, if it only computes that."""
        called = self.program.functions.get(self.text(i), [])
        if len(called) != 1 or called[0].is_kernel or called[0].brace is None:
            return None
        function = called[0]
        if function is self.function or self.program.problem(function) is not None:
            return None
        body = function.parse().body
        if len(body) != 1 or body[0].kind != "return":
            return None
        inner = type(self)(self.program, function)
        inner.uniform = {v for v in function.parameters if inner.is_fixed(v)}
        part = (body[0].first + 1, body[0].last - 1)
        if not inner.is_recomputable(part) or function.template_names():
            return None
        claims = [claim for claim in inner.claims if claim.startswith("EMULATOR_IS_CONSTANT")]
        if len(claims) < len(inner.claims) or not takes_values(function):
            return None
        self.claims.update(inner.claims)
        return inner, part

    def steps(self, part):
        """The assignments in a range with commas between, `++i, j -= n`; None if there is more."""
        found, begin, i = [], part[0], part[0]
        while i <= part[1] + 1:
            if i == part[1] + 1 or self.text(i) == ",":
                found.append(self.step(begin, i - 1))
                begin = i + 1
            elif self.text(i) in ("(", "[", "{"):
                i = self.tokens.match_forward(i)
            i += 1
        return None if None in found else found

    def step(self, first, last):
        """`++i`, `i--`, `i = n`, `i *= n`, `i <<= n` or their like as a Step, else None."""
        text, touch = self.text, self.tokens.adjacent
        for name, sign in ((first + 2, first), (first, first + 1)):
            doubled = text(sign) in ("+", "-") and text(sign + 1) == text(sign)
            if last == first + 2 and doubled and touch(sign) and name in self.owner:
                return Step(first, last, self.owner[name], None)
        if first not in self.owner:
            return None
        signs, value = text(first + 1) + text(first + 2), None
        if text(first + 1) == "<<=" or (text(first + 1) == "=" and text(first + 2) != "="):
            value = (first + 2, last)
        elif signs in ("+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", ">>=") and touch(first + 1):
            value = (first + 3, last)
        return Step(first, last, self.owner[first], value) if value else None

    def skip_cast(self, i):
        """Index of the > of static_cast<...>."""
        return Parser(self.tokens).template_forward(i + 1) or i
