"""How integers differ from a thread to its neighbour in x.

`threadIdx.x` and sums with it are consecutive: a row of threads accesses neighbouring elements, and
the threads that meet `i < n` come first in it.
"""

import re

from block_loops.uniformity import Uniformity
from cuda_source.functions import CASTS, INDICES

WHOLE = re.compile(r"(0[xX][\da-fA-F']+|[\d']+)[uUlL]*")
INTEGER = re.compile(
    r"(unsigned |signed |std :: |long |short )*(int|unsigned|long|short|size_t|ptrdiff_t|"
    r"u?int(8|16|32|64)_t|uint)"
)
# How an integer changes from a thread to its neighbour in x: not, by 1, not (if the first and
# the last of some threads agree), or in any way.
INVARIANT, CONSECUTIVE, ALIKE, ANY = "invariant", "consecutive", "alike", "any"


class Strides(Uniformity):
    """The questions about the integers of one function."""

    def __init__(self, program, function):
        super().__init__(program, function)
        self.strides = {}
        self.integers = set()  # variables that are believed to be integers
        self.numerators = []  # ranges that must grow by 1 for a quotient to be alike

    def stride(self, part):
        """How the recomputable integer in a range changes along x."""
        first, last = part
        if self.text(first) == "(" and self.tokens.match_forward(first) == last:
            return self.stride((first + 1, last - 1))
        if not self.varies(part):
            return INVARIANT
        if not self.is_integral(part):
            return ANY
        if last == first + 2 and self.text(first) == "threadIdx":
            return CONSECUTIVE
        if first == last and first in self.owner:
            return self.strides.get(self.owner[first], ANY)
        if self.text(first) == "static_cast":
            opening = self.text(first + 2)
            behind = first + 4
            if INTEGER.fullmatch(opening) and self.tokens.match_forward(behind) == last:
                return self.stride((behind + 1, last - 1))
            if self.text(behind) == "(" and self.tokens.match_forward(behind) == last:
                return ANY
        if self.text(first + 1) == "(" and last == first + 2 and self.returned(first):
            inner, returned = self.returned(first)
            stride = inner.stride(returned)
            self.claims.update(inner.claims)
            return ANY if stride == ALIKE else stride  # numerators are compared here alone
        return self.stride_of_sum(part)

    def varies(self, part):
        """Whether an expression may differ along x."""
        for i in range(part[0], part[1] + 1):
            word = self.text(i)
            if word == "threadIdx" and self.text(i + 2) not in ("y", "z"):
                return True
            if i in self.owner and self.strides.get(self.owner[i], INVARIANT) != INVARIANT:
                return True
            if word in self.program.functions and i not in self.owner:
                returned = self.returned(i)
                if returned is None or returned[0].varies(returned[1]):
                    return True
        return False

    def stride_of_sum(self, part):
        """The stride of `a + b - c`, of `a / b` and of `a % b`."""
        terms, signs = self.split(part, "+-")
        if terms is None:
            return ANY
        if len(terms) > 1:
            varying = [k for k, term in enumerate(terms) if self.varies(term)]
            if len(varying) != 1 or (varying[0] > 0 and signs[varying[0] - 1] == "-"):
                return ANY
            return self.stride(terms[varying[0]])
        factors, signs = self.split(part, "*/%")
        if factors is None or len(factors) != 2 or self.varies(factors[1]):
            return ANY
        if self.stride(factors[0]) != CONSECUTIVE:
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
            return self.strides.get(self.owner[left[0]]) == CONSECUTIVE
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
                inner = [left] if left and self.stride(left) == CONSECUTIVE else None
            if inner is None:
                return None
            found += inner
        return None if parts is None and self.varies(part) else found
