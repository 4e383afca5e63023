"""Reads the body of a function as statements. block_loops/fission.py builds on it.

This is no C++ compiler: what it does not know becomes a statement of kind "other", and whoever
sees one leaves the function alone.
"""

from cuda_source.tokens import OPENING

TYPE_WORDS = frozenset(
    "void bool char short int long float double signed unsigned size_t ptrdiff_t "
    "int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t uint uchar ushort".split()
) | frozenset(
    base + size
    for base in (
        "char uchar short ushort int uint long ulong float double longlong ulonglong".split()
    )
    for size in "1234"
)
# Those of them that have members.
VECTORS = frozenset(word for word in TYPE_WORDS if word[-1] in "1234")
QUALIFIERS = frozenset(
    "const constexpr volatile register extern static __shared__ __align__ alignas typename struct "
    "__restrict__ __restrict".split()
)
# Statements that begin with one of these are not understood.
UNKNOWN = frozenset(
    "switch case default goto try asm __asm__ using typedef struct class union enum".split()
)


class Variable:
    """A local variable or parameter; ranges are pairs of token indices, first and last."""

    def __init__(self, name, specifiers, stars="", dimensions=None, initial=None, style=""):
        self.name = name
        self.specifiers = specifiers  # words before the declarator
        self.stars = stars
        self.dimensions = dimensions  # range of [3][4], or None
        self.initial = initial  # range of the initial value, or None
        self.style = style  # "=", "(" or "{"
        self.uses = []  # token indices
        self.is_parameter = self.is_shadowed = False

    @property
    def type(self):
        """The type as text, without const unless a pointer's target is; an array's element's."""
        dropped = QUALIFIERS - ({"typename", "const"} if self.stars else {"typename"})
        return " ".join(word for word in self.specifiers if word not in dropped) + self.stars

    @property
    def is_shared(self):
        """Whether it lies in shared memory."""
        return "__shared__" in self.specifiers

    @property
    def is_reference(self):
        """Whether it is declared with an &."""
        return "&" in self.stars


class Statement:
    """A statement: tokens first .. last, and what its kind has.

    block: body. if: condition, then, otherwise. for: initial, condition, step, inner.
    while, do: condition, inner. declaration: variables. return, break, continue, expression,
    empty, other: nothing more.
    """

    def __init__(self, kind, first, last, **parts):
        self.kind, self.first, self.last = kind, first, last
        self.__dict__.update(parts)

    def children(self):
        """The statements in this one."""
        if self.kind == "block":
            return self.body
        names = ("initial", "then", "otherwise", "inner")
        found = [getattr(self, name, None) for name in names]
        return [child for child in found if isinstance(child, Statement)]

    def walk(self):
        """This statement and all in it."""
        yield self
        for child in self.children():
            yield from child.walk()


def one_by_one(statement):
    """`int a, b;` as two declarations, both of the same tokens; others as they are."""
    if statement.kind != "declaration" or statement.variables[0].is_shared:
        return [statement]
    first, last = statement.first, statement.last
    return [Statement("declaration", first, last, variables=[v]) for v in statement.variables]


class Parser:
    """Reads statements from the tokens of a source."""

    def __init__(self, tokens):
        self.tokens = tokens
        self.text = tokens.text

    def block(self, brace):
        """The block whose { is at an index."""
        end = self.tokens.match_forward(brace)
        return Statement("block", brace, end, body=self.sequence(brace + 1, end))

    def sequence(self, i, end):
        """The statements between two indices."""
        found = []
        while i < end:
            statement = self.statement(i, end)
            found += one_by_one(statement)
            i = statement.last + 1
        return found

    def statement(self, i, end):
        """The statement that begins at an index."""
        word = self.text(i)
        if word == "{":
            return self.block(i)
        if word == ";":
            return Statement("empty", i, i)
        if word in ("if", "for", "while", "do"):
            read = getattr(self, "read_" + word)(i, end)
            return read or self.other(i, end)
        if word in UNKNOWN or (self.text(i + 1) == ":" and self.tokens.all[i].kind == "word"):
            return self.other(i, end)
        last = self.semicolon(i, end)
        if last is None:
            return self.other(i, end)
        if word in ("return", "break", "continue"):
            return Statement(word, i, last)
        variables = self.declaration(i, last)
        if variables:
            return Statement("declaration", i, last, variables=variables)
        if self.may_declare(i):
            return self.other(i, end)
        return Statement("expression", i, last)

    def may_declare(self, i):
        """Whether a statement that is not understood may declare what hides another name:
        `auto [a, b] = pair;`, `int(x) = 3;`, `Pair<int, 2> x = pair<int, 2>();`."""
        words, behind = self.specifiers(i)
        if any(word in TYPE_WORDS or word in QUALIFIERS or word == "auto" for word in words):
            return True
        if words and self.tokens.all[behind].kind == "word":
            return True
        in_brackets = self.text(behind) == "(" and self.text(behind + 2) == ")"
        return bool(words) and in_brackets and self.text(behind + 3) in ("=", "{", "[", "(")

    def other(self, i, end):
        """The rest of a sequence, not understood."""
        return Statement("other", i, end - 1)

    def semicolon(self, i, end):
        """Index of the ; that ends the statement at an index, or None."""
        while i < end:
            if self.text(i) == ";":
                return i
            if self.text(i) in OPENING:
                i = self.tokens.match_forward(i)
                if i is None:
                    return None
            i += 1
        return None

    def parentheses(self, i):
        """The range between the ( at an index and its ), or None."""
        if self.text(i) != "(":
            return None
        close = self.tokens.match_forward(i)
        return None if close is None else (i + 1, close - 1)

    def read_if(self, i, end):
        """The `if` at an index; None if it is not understood. `end` is that of the block around."""
        condition = self.parentheses(i + 1)  # None for `if constexpr`
        if condition is None or self.semicolon(*condition) is not None:
            return None
        then = self.statement(condition[1] + 2, end)
        otherwise, last = None, then.last
        if self.text(last + 1) == "else":
            otherwise = self.statement(last + 2, end)
            last = otherwise.last
        return Statement("if", i, last, condition=condition, then=then, otherwise=otherwise)

    def read_for(self, i, end):
        """The `for` at an index; None if it is not understood, as one over a range."""
        header = self.parentheses(i + 1)
        if header is None:
            return None
        first, close = header[0], header[1] + 1
        one = self.semicolon(first, close)
        two = None if one is None else self.semicolon(one + 1, close)
        if two is None:
            return None  # over a range
        initial = self.statement(first, close)
        inner = self.statement(close + 1, end)
        parts = {"initial": initial, "condition": (one + 1, two - 1), "step": (two + 1, close - 1)}
        return Statement("for", i, inner.last, inner=inner, **parts)

    def read_while(self, i, end):
        """The `while` at an index; None if it is not understood."""
        condition = self.parentheses(i + 1)
        if condition is None:
            return None
        inner = self.statement(condition[1] + 2, end)
        return Statement("while", i, inner.last, condition=condition, inner=inner)

    def read_do(self, i, end):
        """The `do` at an index; None if it is not understood."""
        inner = self.statement(i + 1, end)
        condition = self.parentheses(inner.last + 2)
        if self.text(inner.last + 1) != "while" or condition is None:
            return None
        return Statement("do", i, condition[1] + 2, condition=condition, inner=inner)

    def named_type(self, i):
        """Index behind the name of a type, as a::b<c>, or None."""
        while self.tokens.all[i].kind == "word":
            i += 1
            if self.text(i) == "<":
                close = self.template_forward(i)
                if close is None:
                    return None
                i = close + 1
            if self.text(i) != "::":
                return i
            i += 1
        return None

    def template_forward(self, i):
        """Index of the > that closes a <, or None."""
        depth = 0
        while self.text(i) not in ("", ";", "}", "="):
            if self.text(i) == "{" and not self.is_value(i):
                return None
            if self.text(i) in OPENING:
                i = self.tokens.match_forward(i)
                if i is None:
                    return None
            depth += (self.text(i) == "<") - (self.text(i) == ">")
            if depth == 0:
                return i
            i += 1
        return None

    def is_value(self, i):
        """Whether a brace may begin a value, as in `int{3}`, and not a block."""
        before = self.tokens.all[i - 1]
        return before.kind == "word" and before.text not in ("else", "do")

    def specifiers(self, i):
        """The words of a type, and the index behind them."""
        words, has_type = [], False
        while self.tokens.all[i].kind == "word":
            word = self.text(i)
            if word in ("__align__", "alignas"):
                i = (self.tokens.match_forward(i + 1) or i) + 1
                continue
            if word in QUALIFIERS:
                words.append(word)
            elif word in TYPE_WORDS or word == "auto":
                words.append(word)
                has_type = True
            elif has_type:
                break
            else:
                behind = self.named_type(i)
                if behind is None:
                    break
                words.append("".join(self.text(k) + " " for k in range(i, behind)).strip())
                has_type = True
                i = behind
                continue
            i += 1
        return words, i

    def declaration(self, i, last):
        """The variables that a statement declares; none if it is no declaration."""
        words, i = self.specifiers(i)
        if not words:
            return []
        found = []
        while i <= last:
            variable, i = self.declarator(words, i)
            if variable is None or self.text(i) not in (",", ";"):
                return []
            found.append(variable)
            i += 1
        return found

    def declarator(self, words, i):
        """A variable, and the index behind it; None if this is none."""
        stars = ""
        while self.text(i) in ("*", "&", "const", "__restrict__", "__restrict"):
            if self.text(i) in "*&":
                stars += self.text(i)
            i += 1
        if self.tokens.all[i].kind != "word":
            return None, i
        variable = Variable(self.text(i), words, stars)
        i += 1
        if self.text(i) == "[":
            first = i
            while self.text(i) == "[":
                i = (self.tokens.match_forward(i) or i) + 1
            variable.dimensions = (first, i - 1)
        if self.text(i) == "=":
            first = i + 1
            while self.text(i) not in (",", ";", ""):
                i = (self.tokens.match_forward(i) or i) if self.text(i) in OPENING else i
                i += 1
            variable.initial, variable.style = (first, i - 1), "="
        elif self.text(i) in ("(", "{"):
            close = self.tokens.match_forward(i) or i
            variable.initial, variable.style = (i + 1, close - 1), self.text(i)
            i = close + 1
        return variable, i


def resolve(tokens, block, parameters):
    """Gives every variable of a function the indices of the tokens that name it."""
    _Resolver(tokens).visit(block, [{variable.name: variable for variable in parameters}])


class _Resolver:
    def __init__(self, tokens):
        self.tokens = tokens

    def use(self, first, last, scopes):
        """Notes the variables between two indices."""
        for i in range(first, last + 1):
            token = self.tokens.all[i]
            if token.kind != "word" or self.tokens.text(i - 1) in (".", "->", "::"):
                continue
            for scope in reversed(scopes):
                if token.text in scope:
                    scope[token.text].uses.append(i)
                    break

    def visit(self, statement, scopes):
        if statement.kind == "block":
            inner = scopes + [{}]
            for child in statement.body:
                self.visit(child, inner)
        elif statement.kind == "declaration":
            for variable in statement.variables:
                for part in (variable.dimensions, variable.initial):
                    if part is not None:
                        self.use(*part, scopes)
                for scope in scopes:
                    if variable.name in scope:
                        variable.is_shadowed = scope[variable.name].is_shadowed = True
                scopes[-1][variable.name] = variable
        elif statement.children():
            inner = scopes + [{}]
            if statement.kind == "for":
                self.visit(statement.initial, inner)
                self.use(*statement.step, inner)
            self.use(*statement.condition, inner)
            for child in statement.children():
                if child is not getattr(statement, "initial", None):
                    self.visit(child, inner + [{}])
        else:
            self.use(statement.first, statement.last, scopes)
