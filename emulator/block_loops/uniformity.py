"""What is the same for all threads of a block, and what each thread has of its own.

A value is *uniform* if it is made of nothing but parameters that are never assigned, constants,
blockIdx, blockDim, gridDim, and local variables made of these. It is *plain* if it may also use
threadIdx, but no memory: then it may be computed again wherever it is needed.
"""

import re
from collections import namedtuple

from block_loops.uses import Uses
from cuda_source.functions import BARRIER, CASTS, INDICES, PURE, takes_values
from cuda_source.statements import TYPE_WORDS, VECTORS, Parser

CONSTANTS = frozenset("true false nullptr warpSize".split())
# Names of types in casts, and what stands between them.
NUMBER = re.compile(
    r"(0[xX][\da-fA-F']+|[\d'.]+([eE][+-]?\d+)?)[uUlLfF]*|\.\d+([eE][+-]?\d+)?[fFlL]?"
)
WHOLE = re.compile(r"(0[xX][\da-fA-F']+|[\d']+)[uUlL]*")
# Signs of an expression that changes nothing, given that no two of them make `++` or `+=`.
HARMLESS = frozenset("( ) + - * / % < > <= >= ! ~ & | ^ ? : , . << =".split())
INTEGER = re.compile(
    r"(unsigned |signed |std :: |long |short )*(int|unsigned|long|short|size_t|ptrdiff_t|"
    r"u?int(8|16|32|64)_t|uint)"
)
# How an integer changes from a thread to its neighbour in x: not, by 1, not (if the first and
# the last of some threads agree), or in any way.
FIXED, CONSECUTIVE, ALIKE, ANY = "fixed", "consecutive", "alike", "any"


# An assignment of tokens first .. last; value is the range of what is assigned, None for ++.
Step = namedtuple("Step", "first last variable value")


class Analysis(Uses):
    """The questions that may be asked about the expressions of one function."""

    def __init__(self, program, function):
        super().__init__(program, function)
        self.local_names = {variable.name for variable in self.variables}
        self.constants = function.template_names() | program.constants | CONSTANTS
        self.uniform = set()  # variables; fission.py fills it
        self.plain = set()
        self.kinds = {}
        self.integers = set()  # variables that are believed to be integers
        self.numerators = []  # ranges that must grow by 1 for a quotient to be alike
        self.claims = {}  # what is believed of names from outside, for emulator/proofs.h

    # Expressions

    def is_uniform(self, part):
        """Whether the expression in a range is uniform."""
        return part is not None and self.is_pure(part, self.uniform, False)

    def is_plain(self, part):
        """Whether the expression in a range is plain."""
        return part is not None and self.is_pure(part, self.uniform | self.plain, True)

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
        inner = Analysis(self.program, function)
        inner.uniform = {v for v in function.parameters if inner.is_fixed(v)}
        part = (body[0].first + 1, body[0].last - 1)
        if not inner.is_plain(part) or function.template_names():
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

    # Threads beside each other

    def kind(self, part):
        """How the plain integer in a range changes along x."""
        first, last = part
        if self.text(first) == "(" and self.tokens.match_forward(first) == last:
            return self.kind((first + 1, last - 1))
        if not self.varies(part):
            return FIXED
        if not self.is_integral(part):
            return ANY
        if last == first + 2 and self.text(first) == "threadIdx":
            return CONSECUTIVE
        if first == last and first in self.owner:
            return self.kinds.get(self.owner[first], ANY)
        if self.text(first) == "static_cast":
            opening = self.text(first + 2)
            behind = first + 4
            if INTEGER.fullmatch(opening) and self.tokens.match_forward(behind) == last:
                return self.kind((behind + 1, last - 1))
            if self.text(behind) == "(" and self.tokens.match_forward(behind) == last:
                return ANY
        if self.text(first + 1) == "(" and last == first + 2 and self.returned(first):
            inner, returned = self.returned(first)
            kind = inner.kind(returned)
            self.claims.update(inner.claims)
            return ANY if kind == ALIKE else kind  # numerators are compared here alone
        return self.kind_of_sum(part)

    def varies(self, part):
        """Whether an expression may differ along x."""
        for i in range(part[0], part[1] + 1):
            word = self.text(i)
            if word == "threadIdx" and self.text(i + 2) not in ("y", "z"):
                return True
            if i in self.owner and self.kinds.get(self.owner[i], FIXED) != FIXED:
                return True
            if word in self.program.functions and i not in self.owner:
                returned = self.returned(i)
                if returned is None or returned[0].varies(returned[1]):
                    return True
        return False

    def kind_of_sum(self, part):
        """The kind of `a + b - c`, of `a / b` and of `a % b`."""
        terms, signs = self.split(part, "+-")
        if terms is None:
            return ANY
        if len(terms) > 1:
            varying = [k for k, term in enumerate(terms) if self.varies(term)]
            if len(varying) != 1 or (varying[0] > 0 and signs[varying[0] - 1] == "-"):
                return ANY
            return self.kind(terms[varying[0]])
        factors, signs = self.split(part, "*/%")
        if factors is None or len(factors) != 2 or self.varies(factors[1]):
            return ANY
        if self.kind(factors[0]) != CONSECUTIVE:
            return ANY
        if signs[0] == "/":
            self.numerators.append(factors[0])
        return {"/": ALIKE, "%": CONSECUTIVE}.get(signs[0], ANY)

    def split(self, part, separators):
        """The ranges between operators outside of brackets; None if there are weaker ones."""
        found, signs, begin, i = [], [], part[0], part[0]
        while i <= part[1]:
            text = self.text(i)
            if text in CASTS:
                i = self.skip_cast(i)
            elif text in ("(", "["):
                i = self.tokens.match_forward(i)
            elif text in separators and self.is_operand_before(i):
                found.append((begin, i - 1))
                signs.append(text)
                begin = i + 1
            elif text in ("<", ">", "=", "?", ":", "&", "|", "^", ",", "<<", ">=", "<=", "!", "~"):
                return None, None
            i += 1
        return found + [(begin, part[1])], signs

    def skip_cast(self, i):
        """Index of the > of static_cast<...>."""
        return Parser(self.tokens).template_forward(i + 1) or i

    def is_integral(self, part):
        """Whether nothing in an expression has a fraction."""
        variables, i = set(), part[0]
        while i <= part[1]:
            token = self.tokens.all[i]
            if i in self.owner:
                variables.add(self.owner[i])
                if not self.program.is_integer(self.owner[i]) or self.text(i + 1) == ".":
                    return False
            elif token.kind == "number":
                if not WHOLE.fullmatch(token.text):
                    return False
            elif token.kind == "word":
                if token.text in INDICES:
                    i += 2
                elif token.text == "static_cast":
                    close = self.skip_cast(i)
                    if not INTEGER.fullmatch(" ".join(self.text(k) for k in range(i + 2, close))):
                        return False
                    i = close
                elif not self.is_whole_word(token.text):
                    return False
            i += 1
        self.integers |= variables
        return True

    def is_whole_word(self, word):
        """Whether a word is an integer's, of its type, or a call's that is known."""
        values = self.function.template_names() - self.function.type_names()
        if word in values | self.program.whole_constants:
            self.claims["EMULATOR_IS_WHOLE(%s)" % word] = True
            return True
        if word in ("warpSize", "const", "sizeof"):
            return True
        word = self.program.aliases.get(word, word)
        return bool(INTEGER.fullmatch(word)) or self.program.returns_integer(word)

    def is_falling(self, part, rising=False):
        """Whether a condition, once false along x, stays false: `i < n && j < m`.

        With `rising`, once true stays true: `i >= n || j >= m`.
        """
        parts = self.joined(part, "|" if rising else "&")
        if parts is None:
            return not self.varies(part)
        return all(self.falls(term, rising) for term in parts)

    def joined(self, part, joint):
        """The ranges between && (or ||) of an expression, or None if it is none of that kind."""
        other = "&" if joint == "|" else "|"
        begin, i, parts = part[0], part[0], []
        while i <= part[1]:
            if self.text(i) in ("(", "["):
                i = self.tokens.match_forward(i)
            elif self.text(i) in (other, "?", ","):
                return None
            elif self.text(i) == joint and self.text(i + 1) == joint and self.tokens.adjacent(i):
                parts.append((begin, i - 1))
                begin = i = i + 2
                continue
            i += 1
        return parts + [(begin, part[1])]

    def falls(self, part, rising):
        """Whether `i < n`, or with `rising` `i >= n`, has its varying side on the left alone."""
        if not self.varies(part):
            return True
        if self.text(part[0]) == "(" and self.tokens.match_forward(part[0]) == part[1]:
            return self.is_falling((part[0] + 1, part[1] - 1), rising)
        left = self.left_side(part, (">", ">=") if rising else ("<", "<="))
        if left is None:
            return False
        if left[0] == left[1] and left[0] in self.owner:
            return self.kinds.get(self.owner[left[0]]) == CONSECUTIVE
        return self.text(left[0]) == "threadIdx" and left[1] == left[0] + 2

    def left_side(self, part, wanted):
        """The range before the only comparison in another, if what is behind does not vary."""
        signs, i = [], part[0]
        while i <= part[1]:
            if self.text(i) in CASTS:
                i = self.skip_cast(i)
            elif self.text(i) == "(":
                i = self.tokens.match_forward(i)
            elif self.text(i) in ("<", "<=", ">", ">=", "=", "!"):
                signs.append(i)
            i += 1
        if len(signs) != 1 or self.text(signs[0]) not in wanted:
            return None
        right = (signs[0] + 1, part[1])
        # `i < n ^ m` is another comparison.
        if self.varies(right) or self.split(right, "+-")[0] is None:
            return None
        return part[0], signs[0] - 1

    def bounded(self, part):
        """The integers i that grow by 1 along x in `i < n && j < m`; None for other conditions."""
        parts, found = self.joined(part, "&"), []
        for term in parts or ():
            if not self.varies(term):
                continue
            if self.text(term[0]) == "(" and self.tokens.match_forward(term[0]) == term[1]:
                inner = self.bounded((term[0] + 1, term[1] - 1))
            else:
                left = self.left_side(term, ("<", "<="))
                inner = [left] if left and self.kind(left) == CONSECUTIVE else None
            if inner is None:
                return None
            found += inner
        return None if parts is None and self.varies(part) else found

    def touched(self, statements):
        """Names of the memory that statements use, and of that which they may write."""
        used, written = set(), set()
        for statement in statements:
            variables = getattr(statement, "variables", [])
            if variables and all(v in self.plain for v in variables):
                continue
            for i in range(statement.first, statement.last + 1):
                if self.is_memory(i):
                    used.add(self.text(i))
                    if self.may_write(i):
                        written.add(self.text(i))
        return used, written

    def is_memory(self, i):
        """Whether a token names memory that other threads may use, too."""
        variable = self.owner.get(i)
        if variable is None:
            is_name = self.tokens.all[i].kind == "word" and self.text(i - 1) not in (".", "->")
            return is_name and self.text(i + 1) == "["
        is_array = variable.is_parameter and variable.dimensions
        return bool(variable.is_shared or "*" in variable.stars or is_array)

    def may_write(self, i):
        """Whether the memory that a token names is assigned, or handed on."""
        if self.text(i + 1) not in ("[", "->"):
            return True
        j = i + 1
        while self.text(j) in ("[", ".", "->"):
            j = self.tokens.match_forward(j) + 1 if self.text(j) == "[" else j + 2
        before, sign, following = self.text(i - 1), self.text(j), self.text(j + 1)
        if sign == "=" and not (following == "=" and self.tokens.adjacent(j)):
            return True
        if sign in ("+", "-") and following == sign and self.tokens.adjacent(j):
            return True
        if before == "&" or (before in ("+", "-") and self.text(i - 2) == before):
            return True
        if sign and sign in "+-*/%&|^" and following == "=" and self.tokens.adjacent(j):
            return True
        return sign == "<<=" or (sign == ">" and following == ">=")

    def conflict(self, first, second):
        """Whether one list of statements may write what another one uses."""
        used, written = self.touched(first)
        used_too, written_too = self.touched(second)
        return bool(used & written_too or written & used_too)

    def has_barrier(self, statement):
        """Whether a barrier stands in a statement."""
        return any(self.text(i) == BARRIER for i in range(statement.first, statement.last + 1))
