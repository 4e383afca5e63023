"""How a function uses its variables: which it changes, copies, or takes the address of.

Guesses: what is believed to stay the same is `const` in a second version, so the compiler refuses
that version if it is not so.
"""

import re

from block_loops.addresses import Addresses
from cuda_source.functions import call_name, is_built_in
from cuda_source.statements import TYPE_WORDS


class Uses(Addresses):
    """The variables of one function, by the tokens that name them."""

    def __init__(self, program, function):
        self.program, self.function = program, function
        self.tokens, self.text = function.tokens, function.tokens.text
        self.block = function.parse()
        self.variables = list(function.parameters)
        for statement in self.block.walk():
            self.variables += getattr(statement, "variables", [])
        self.owner = {i: variable for variable in self.variables for i in variable.uses}
        self.changes = {v: [i for i in v.uses if self.is_changed(v, i)] for v in self.variables}
        known = program.pinned.get(program.number(function), ())
        # Other letters are written down in other ways.
        self.pinned = {
            v for v in self.variables
            if v.name in known or not v.name.isascii() or any(self.is_pinned(i) for i in v.uses)
        }  # fmt: skip

    def unpinned(self):
        """The names of variables whose addresses nobody should have."""
        return {v.name for v in self.variables if not (v.is_reference or v.is_shared)} - {
            v.name for v in self.pinned
        }

    def is_changed(self, variable, i):
        """Whether a variable is assigned where it is named.

        A guess: what is believed to stay the same is `const` in a second version.
        """
        first, j, program = i, i + 1, self.program
        is_pointer = "*" in variable.stars or (variable.is_parameter and variable.dimensions)
        is_object = not is_pointer and not variable.is_reference
        is_object = is_object and not is_built_in(variable, program.number_names(self.function))
        if is_object and program.has_mutable:
            return True  # a member changes though the object is constant
        while True:
            if self.text(j) == "." and self.tokens.all[j + 1].kind == "word":
                j += 2
                if self.text(j) == "(":
                    return True  # a member function
            elif self.text(j) == "[" and is_object and variable.is_parameter:
                return j == i + 1  # an operator; but matrix.elements[k] is none
            elif self.text(j) == "[" and not is_pointer:
                j = self.tokens.match_forward(j) + 1
            elif (
                self.text(first - 1) == "(" and self.text(j) == ")" and not self.is_call(first - 1)
            ):
                first, j = first - 1, j + 1
            else:
                break
        before = self.text(first - 1)
        if (
            before in ("+", "-")
            and self.text(first - 2) == before
            and self.tokens.adjacent(first - 2)
        ):
            return True
        if is_object and j == i + 1:
            return not self.is_copied(variable, first, j)
        return self.is_changed_behind(j)

    def is_call(self, i):
        """Whether the ( at an index may be a call's, or a condition's."""
        before = self.tokens.all[i - 1]
        return (before.kind == "word" and before.text != "return") or before.text in (")", "]", ">")

    def is_copied(self, variable, first, behind):
        """Whether an object becomes another of its type: an argument, or an initial value.

        No function of its own is called for that, so constant or not makes no difference.
        """
        before, after = self.text(first - 1), self.text(behind)
        if not self.program.overloads.is_one_type(variable.type):
            return False
        if before == "sizeof" or (before == "(" and self.text(first - 2) == "sizeof"):
            return True
        if before in ("(", ",") and after in (",", ")"):
            return variable.type == self.type_of_argument(first)
        part = (first, behind - 1)
        made = [v for v in self.variables if v.initial == part and v.style == "="]
        return bool(made) and made[0].type in (variable.type, "auto")

    def type_of_argument(self, i):
        """The type of the parameter that the argument beginning at an index is for, or None."""
        number, k = 0, i - 1
        while self.text(k) not in ("", ";", "{", "}", "("):
            number += self.text(k) == ","
            k = self.tokens.match_backward(k) or k
            k -= 1
        name = call_name(self.tokens, k) if self.text(k) == "(" else None
        called = self.program.functions.get(self.text(name), []) if name is not None else []
        if len(called) != 1 or number >= len(called[0].parameters or ()):
            return None
        parameter = called[0].parameters[number]
        return None if parameter.dimensions else parameter.type

    def object_claims(self, variable):
        """What is believed of what is named of a constant object: nothing tells it is constant."""
        claims = {}
        for i in variable.uses:
            name, behind = self.member(i)
            if name == variable.name:
                continue
            for place in re.finditer(r"\[", name):
                claims["EMULATOR_IS_INDEXED(%s) " % name[: place.start()]] = True
            wanted = None
            if self.text(i - 1) in ("(", ",") and self.text(behind) in (",", ")"):
                wanted = self.type_of_argument(i)
            if wanted is not None and not set("&*") & set(wanted):
                claims["EMULATOR_IS_COPIED(%s, %s) " % (name, wanted)] = True
            else:
                claims["EMULATOR_IS_PART(%s) " % name] = True
        return claims

    def member(self, i):
        """The text of `a.b[k].c` from an index on, as `a.b[0].c`, and the index behind it."""
        name, behind = self.text(i), i + 1
        while True:
            if self.text(behind) == "." and self.tokens.all[behind + 1].kind == "word":
                name += "." + self.text(behind + 1)
                behind += 2
            elif self.text(behind) == "[":
                name += "[0]"
                behind = self.tokens.match_forward(behind) + 1
            else:
                return name, behind

    def is_changed_behind(self, i):
        """Whether what ends before a token is assigned, or counted up or down."""
        sign, following = self.text(i), self.text(i + 1)
        touch = self.tokens.adjacent(i)
        if sign in ("+", "-") and following == sign and touch:
            return True
        if sign == "=":
            return following != "=" or not touch
        if sign and sign in "+-*/%&|^" and following == "=" and touch:
            return True
        return sign == "<<=" or (sign == ">" and following == ">=" and touch)

    def is_operand_before(self, i):
        """Whether a value ends before a token, so that & or * there has two operands."""
        before = self.tokens.all[i - 1]
        if before.text == ")":
            first = self.tokens.match_backward(i - 1)
            words = [self.text(k) for k in range(first + 1, i - 1)]
            return not all(w in TYPE_WORDS or w in ("const", "*") for w in words)
        return (
            before.kind in ("number", "text")
            or before.text == "]"
            or (before.kind == "word" and before.text not in ("return", "else", "do", "case"))
        )

    def is_fixed(self, variable):
        """Whether a variable keeps the value that it begins with."""
        return (
            not self.changes[variable]
            and variable not in self.pinned
            and not variable.is_reference
            and not variable.is_shared
            and (variable.dimensions is None or variable.is_parameter)
        )

    def names(self, first, last):
        """The variables that are named between two indices."""
        return {self.owner[i] for i in range(first, last + 1) if i in self.owner}
