"""Finds the variables whose addresses may become known: by &, a reference, an object.

Whoever knows an address may change the variable, or read it where it is not named. So this errs on
one side: what is not surely a use of the value alone pins the variable to its place.
"""

from cuda_source.functions import call_name, is_built_in
from cuda_source.statements import QUALIFIERS, TYPE_WORDS

CONDITIONS = ("if", "while", "for", "switch", "sizeof", "alignof", "return")
SIGNS = ("+", "-", "*", "/", "%", "<", ">")
CHOOSING = ("min", "max")  # of std: one of their arguments itself
CLASSES = ("struct", "class", "union")


class Addresses:
    """Part of Uses, which knows the tokens, and which variable each names."""

    def is_class(self, variable):
        """Whether a variable may be an object that keeps addresses. What a template's type is, and
        `auto`, the compiler is asked where it matters."""
        words = set(variable.specifiers) - QUALIFIERS - TYPE_WORDS - {"auto"}
        words -= self.program.number_names(self.function)
        return bool(words) and "*" not in variable.stars

    def has_classes(self):
        """Whether a local variable is an object of one of the program's own classes."""
        places = self.program.places
        named = {self.program.tokens.text(i + 1) for word in CLASSES for i in places.get(word, ())}
        return any(
            set(v.specifiers) & named and "*" not in v.stars
            for v in self.variables
            if not v.is_parameter and not v.is_shared
        )

    def is_pinned(self, i):
        """Whether a variable's address may be taken where it is named, in whatever way."""
        variable = self.owner[i]
        is_array = variable.dimensions and not variable.is_parameter
        is_pointer = "*" in variable.stars or (variable.is_parameter and variable.dimensions)
        if is_pointer and not is_array and self.text(i + 1) in ("[", "->"):
            return False  # what it leads to
        start = i
        while not (self.is_address_of(self.before_counting(i)) or self.is_cast(i - 1, "&")):
            if i == start and self.is_operand(i):
                return False
            i = self.opening_before(i)
            if self.is_initial(i) or self.text(i) not in ("(", "[", "{"):
                return self.begins_holder(start)
            if self.text(i) == "[":
                return self.indexes_by_reference()
            if self.text(i) == "{":
                return self.is_list(i)
            name = call_name(self.tokens, i)
            if name is not None and self.text(name - 1) == "::" and self.text(name) in CHOOSING:
                i = name - 1 - (self.text(name - 2) == "std")
                continue
            if name is not None and self.text(name) not in CONDITIONS:
                return self.is_address_of(name - 1) or self.takes_address(name, i)
            if name is not None and self.text(name) != "return":
                return False
        return True

    def is_operand(self, i):
        """Whether a number is an operand of arithmetic, which gives a new value."""
        variable, names = self.owner[i], self.program.number_names(self.function)
        if variable.dimensions or not is_built_in(variable, names):
            return False
        if "operator" in self.program.places:
            return False  # which may get a reference
        after, before = self.text(i + 1), self.text(i - 1)
        is_doubled = self.text(i + 2) in (after, "=")
        return (before in SIGNS and self.text(i - 2) != before) or (
            after in SIGNS and not is_doubled
        )

    def indexes_by_reference(self):
        """Whether an operator[] of the program gets a reference."""
        tokens = self.program.tokens
        for i in self.program.places.get("operator", ()):
            if tokens.text(i + 1) == "[":
                last = tokens.match_forward(i + 3) or i
                if any(tokens.text(k) == "&" for k in range(i + 3, last)):
                    return True
        return False

    def is_initial(self, bracket):
        """Whether a variable's first value stands in brackets that open at an index."""
        return any(v.initial and v.initial[0] - 1 == bracket for v in self.variables)

    def begins_holder(self, i):
        """Whether a reference or an object gets its first value from what stands at an index."""
        return any(
            (v.is_reference or self.is_class(v)) and v.initial and v.initial[0] <= i <= v.initial[1]
            for v in self.variables
        )

    def is_list(self, i):
        """Whether a { may begin an object, and no statements, and no array of numbers."""
        before = self.tokens.all[i - 1]
        if before.kind != "word" and before.text not in ("=", ",", "(", "{", "]", ">"):
            return False
        if before.text in ("else", "do", "try"):
            return False
        made = [v for v in self.variables if v.initial and v.initial[0] <= i <= v.initial[1]]
        return not made or any(map(self.is_class, made))

    def before_counting(self, i):
        """Index of the token before a name and the ++ or -- before it."""
        while self.text(i - 1) in ("+", "-") and self.text(i - 2) == self.text(i - 1):
            i -= 2
        return i - 1

    def opening_before(self, i):
        """Index of the bracket that a token stands in, or of the statement's begin."""
        i -= 1
        while self.text(i) not in ("", ";", "(", "[", "{"):
            if self.text(i) == "}" and self.text(i + 1) not in (",", ")", "}", ";", "."):
                return i  # of the statement before
            i = (self.tokens.match_backward(i) if self.text(i) in (")", "]", "}") else i) - 1
        return i

    def takes_address(self, name, opening):
        """Whether a call, of the name at an index, may get a reference."""
        called = self.program.functions.get(self.text(name), [])
        names = self.program.aliases.keys()
        for other in called:
            if any(other.tokens.text(j) == "&" for j in range(other.open, other.close)):
                return True
            types = {w for p in other.parameters or () for w in p.specifiers}
            if types & self.program.references:
                return True
        if any(self.text(k) == "&" for k in range(name + 1, opening)):
            return True  # an argument of a template
        places, text = self.program.places, self.text(name)
        is_class = any(
            self.program.tokens.text(i + 1) == text
            for word in CLASSES
            for i in places.get(word, ())
        )
        return is_class or (not called and text in self.program.unknown_types - names)

    def is_cast(self, i, last):
        """Whether a token ends a cast, as `(const float&)`."""
        return self.text(i) == ")" and self.text(i - 1) == last

    def is_address_of(self, i):
        """Whether a token is an & with one operand."""
        if self.text(i) != "&" or self.text(i + 1) == "=":
            return False
        if self.text(i - 1) == "&" and self.tokens.adjacent(i - 1):
            return False
        if self.text(i - 1) != ")":
            return not self.is_operand_before(i)
        first = self.tokens.match_backward(i - 1)
        inside = self.tokens.all[first + 1 : i - 1]
        is_type = all(token.kind == "word" or token.text == "::" for token in inside)
        is_named = any(k in self.owner for k in range(first + 1, i - 1))
        return self.is_cast(i - 1, "*") or (is_type and not is_named)
