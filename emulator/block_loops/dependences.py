"""Which memory statements use and write: what must not be cut without a barrier, or go together."""

from block_loops.strides import Strides
from cuda_source.functions import BARRIER


class Analysis(Strides):
    """The questions that may be asked about the expressions and statements of one function."""

    def touched(self, statements):
        """Names of the memory that statements use, and of that which they may write."""
        used, written = set(), set()
        for statement in statements:
            variables = getattr(statement, "variables", [])
            if variables and all(v in self.recomputable for v in variables):
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
