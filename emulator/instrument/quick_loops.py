"""Has the checked build check what a loop only reads once, and not at each turn.

    for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];

Where all words that such a loop may read are settled (src/checked/shadow.h), its reads tell
nothing new: then a copy of it runs for which the compiler calls no hooks. The loop itself stands
first, as it was, so that errors name its lines and columns:

    for (int emulator_turn = 0; emulator_turn < 2; ++emulator_turn)
      if (emulator_turn == 1) { the loop }
      else if (all it reads is settled) { its copy; emulator_turn = 2; }

A loop is copied if it counts upwards, changes nothing but local numbers, calls nothing but
functions of mathematics, and reads through pointers whose index is linear in the counter. In the
copy all else is constant, since a lambda has captured it, and what is believed of types is said to
the compiler (emulator/claims.h). What is not understood, or refused, stays alone.
"""

import re

from block_loops.dependences import Analysis
from block_loops.loops import SECOND
from block_loops.strides import INTEGER
from cuda_source.functions import INDICES
from cuda_source.statements import TYPE_WORDS
from cuda_source.tokens import MARKER, Edit, quoted

WHOLE = re.compile(r"(0[xX][\da-fA-F]+|\d+)[uUlL]*")
NUMBER = re.compile(r"auto|float|double|bool|" + INTEGER.pattern)
# Too few turns are not worth the call.
FEWEST = 24
ADDED = "for (int emulator_turn = 0; emulator_turn < 2; ++emulator_turn) if (emulator_turn == 1) {"
COPY = """\
} else if (const long long emulator_turns = ::emulator::turns_of(%(first)s, %(bound)s, %(step)s); \
emulator_turns >= %(fewest)d) { \
struct emulator_result { bool emulator_done; %(fields)s}; \
const emulator_result emulator_found = [=%(captures)s]() EMULATOR_UNCHECKED \
__attribute__((noinline)) -> emulator_result { \
const void* emulator_read[%(reads)d][3]; \
for (int emulator_i = 0; emulator_i < 3; ++emulator_i) { \
const %(type)s %(name)s = static_cast<%(type)s>(static_cast<long long>(%(first)s) + \
(emulator_i < 2 ? emulator_i : emulator_turns - 1) * static_cast<long long>(%(step)s)); \
%(addresses)s} \
if (!(%(checks)s)) return {false%(old)s}; \
%(locals)s%(claims)s
# %(line)d %(path)s 3
%(loop)s
return {true%(new)s}; }(); \
if (emulator_found.emulator_done) { emulator_turn = 2; %(results)s} }"""


class NotQuick(Exception):
    """A loop stays as it is."""


def quick_loops(program, edits):
    """Edits that add copies of loops to a program; `edits` are the other ones."""
    found = []
    for group in program.functions.values():
        for function in group:
            if function.brace is not None and program.number(function) not in program.refused:
                found += _of_function(program, function, edits)
    return found


def _of_function(program, function, edits):
    if program.has_pragma(function) or function.parameters is None or is_odd(function):
        return []
    found, analysis = [], Analysis(program, function)
    for statement in analysis.block.walk():
        if statement.kind == "for":
            try:
                found += Loop(analysis, statement, edits).edits()
            except NotQuick:
                continue
    return found


def is_odd(function):
    """Whether a function may be called by the compiler, or declares `auto [a, b]`."""
    if {"constexpr", "consteval"} & set(function.words):
        return True
    words = [function.tokens.text(i) for i in range(function.brace, function.end)]
    return re.search(r"\bauto( &)*( const)? \[", " ".join(words)) is not None


class Loop:
    """One loop, and its copy."""

    def __init__(self, analysis, statement, edits):
        self.analysis, self.loop, self.others = analysis, statement, edits
        self.tokens, self.text, self.owner = analysis.tokens, analysis.text, analysis.owner
        self.reads = []  # (pointer, index as text), no pair twice
        program, function = analysis.program, analysis.function
        self.whole_constants = program.whole_constants | function.template_names() | {"warpSize"}
        self.divides = False  # whether what is read may divide by any number

    def edits(self):
        """The edits that add the copy."""
        start = self.tokens.all[self.loop.first].start
        end = self.tokens.all[self.loop.last].end
        source = self.tokens.source
        self.require(not any(e.start < end and e.end > start for e in self.others))
        self.read_head()
        self.read_body()
        self.require(self.reads)
        file, first = self.tokens.place(start)
        behind, last = self.tokens.place(end)
        function = self.analysis.function
        copied = quoted(SECOND % (self.analysis.program.number(function), function.name))
        text = MARKER.sub(lambda marker: "# %s %s 3" % (marker.group(1), copied), source[start:end])
        before = "{\n# %d %s 3\n%s\n# %d %s\n%s" % (
            first, copied, ADDED, first, quoted(file), self.indent(start))  # fmt: skip
        after = "\n# %d %s 3\n%s }\n# %d %s\n%s" % (
            last, copied, COPY % self.parts(first, copied, text), last, quoted(behind),
            self.indent(end))  # fmt: skip
        return [Edit(start, start, before), Edit(end, end, after)]

    def indent(self, position):
        """Blanks up to the column of a position."""
        source = self.tokens.source
        return re.sub(r"[^\t]", " ", source[source.rfind("\n", 0, position) + 1 : position])

    def parts(self, line, path, text):
        """What fills COPY."""
        changed = [(v.name, "emulator_v%d" % i) for i, v in enumerate(self.changed)]
        filled = {
            "fields": "".join("decltype(%s) %s; " % pair for pair in changed),
            "captures": "".join(", %s = %s" % (at, name) for name, at in changed),
            "old": "".join(", " + at for _, at in changed),
            "locals": "".join("decltype({0}) {0} = {1}; ".format(*pair) for pair in changed),
            "new": "".join(", " + name for name, _ in changed),
            "claims": self.claims(),
            "results": "".join("%s = emulator_found.%s; " % pair for pair in changed),
        }
        addresses = checks = ""
        for i, (pointer, index) in enumerate(self.reads):
            addresses += "emulator_read[%d][emulator_i] = &%s[%s]; " % (i, pointer, index)
            checks += " && sizeof %s[0] == 4" % pointer
            checks += " && emulator_is_settled(emulator_read[%d], emulator_turns)" % i
        return {
            **filled, "addresses": addresses, "checks": checks[4:], "reads": len(self.reads),
            "first": self.first, "bound": self.bound, "step": self.step, "fewest": FEWEST,
            "type": self.counter.type, "name": self.counter.name,
            "line": line, "path": path, "loop": text,
        }  # fmt: skip

    def claims(self):
        """What is believed: that the loop's names are numbers, so that nothing else is called."""
        outside = {self.owner[i] for i in range(self.loop.first, self.loop.last + 1)
                   if i in self.owner} - set(self.inside)  # fmt: skip
        text = "".join("EMULATOR_NUMBER(%s) " % name for name in sorted(v.name for v in outside))
        elements = sorted({pointer for pointer, _ in self.reads})
        return text + "".join("EMULATOR_ELEMENT(%s) " % name for name in elements)

    @staticmethod
    def require(condition):
        """Raises NotQuick unless the condition holds."""
        if not condition:
            raise NotQuick

    # The head

    def read_head(self):
        """The counter, and where it begins and ends, as text."""
        initial, text = self.loop.initial, self.text
        self.require(initial.kind == "declaration" and len(initial.variables) == 1)
        counter = self.counter = initial.variables[0]
        self.require(INTEGER.fullmatch(counter.type) and not counter.dimensions)
        self.require(counter.style == "=" and counter not in self.analysis.pinned)
        self.inside = [counter]  # variables that are declared in the loop
        for statement in self.loop.inner.walk():
            self.require(statement.kind in ("block", "if", "expression", "declaration", "empty"))
            self.inside += getattr(statement, "variables", [])
            if statement.kind == "if":  # if (int n = ...)
                word = text(statement.condition[0])
                self.require(word not in TYPE_WORDS and word not in ("auto", "const"))
        self.changed = [
            v for v in self.analysis.variables
            if v not in self.inside and any(self.is_here(i) for i in self.analysis.changes[v])
        ]  # fmt: skip
        self.first = self.whole(counter.initial, True)
        begin, end = self.loop.condition
        self.require(self.owner.get(begin) is counter and text(begin + 1) in ("<", "<="))
        self.bound = "%s%s" % (
            self.whole((begin + 2, end), True),
            " + 1ll" * (text(begin + 1) == "<="),
        )
        self.read_step(*self.loop.step)
        steps = range(self.loop.step[0], self.loop.step[1] + 1)
        self.require(all(i in steps for i in self.analysis.changes[counter]))

    def read_step(self, begin, end):
        """`++k`, `k++` or `k += n`."""
        words = [self.text(i) for i in range(begin, end + 1)]
        name = self.counter.name
        if words in (["+", "+", name], [name, "+", "+"]):
            self.step = "1"
            return
        self.require(words[:3] == [name, "+", "="])
        self.step = self.whole((begin + 3, end))

    def is_here(self, i):
        """Whether a token stands in the loop."""
        return self.loop.first <= i <= self.loop.last

    def whole(self, part, divides=False):
        """The text of a whole number that is the same at each turn. One that the loop works out in
        any case may divide."""
        self.divides = divides
        text, degree = self.linear(part)
        self.divides = False
        self.require(degree == 0)
        return text

    # Indices

    def linear(self, part):
        """An expression of whole numbers as text, and its degree in the counter: 0 or 1."""
        first, last = part
        self.require(first <= last)
        terms, signs = self.analysis.split(part, "+-")
        self.require(terms is not None)
        if len(terms) > 1:
            found = [self.linear(term) for term in terms]
            text = found[0][0]
            for sign, (term, _) in zip(signs, found[1:]):
                text += " %s %s" % (sign, term)
            return "(%s)" % text, max(degree for _, degree in found)
        factors, signs = self.analysis.split(part, "*/%")
        self.require(factors is not None)
        if len(factors) > 1:
            found = [self.linear(factor) for factor in factors]
            degree = sum(degree for _, degree in found)
            self.require(degree == 0 or (degree == 1 and set(signs) == {"*"}))
            for sign, (begin, end) in zip(signs, factors[1:]):
                self.require(sign == "*" or self.divides or self.is_not_zero(begin, end))
            text = found[0][0]
            for sign, (factor, _) in zip(signs, found[1:]):
                text += " %s %s" % (sign, factor)
            return "(%s)" % text, degree
        return self.factor(first, last)

    def is_not_zero(self, first, last):
        """Whether a range is a number that one may divide by."""
        text = self.text(first)
        return first == last and bool(re.fullmatch(r"[1-9]\d*[uUlL]*", text))

    def factor(self, first, last):
        """A name, a number, a cast, or an expression in brackets."""
        text, tokens = self.text, self.tokens
        if text(first) in ("-", "+"):
            inner, degree = self.linear((first + 1, last))
            return "(%s %s)" % (text(first), inner), degree
        if text(first) == "(" and tokens.match_forward(first) == last:
            return self.linear((first + 1, last - 1))
        if text(first) == "(":  # (int64_t)k
            close = tokens.match_forward(first)
            return self.cast((first + 1, close - 1), (close + 1, last))
        if text(first) == "static_cast":
            close = self.analysis.skip_cast(first)
            self.require(text(close + 1) == "(" and tokens.match_forward(close + 1) == last)
            return self.cast((first + 2, close - 1), (close + 2, last - 1))
        if first == last:
            return self.single(first)
        words = [text(i) for i in range(first, last + 1)]
        self.require(len(words) == 3 and words[0] in INDICES and words[1] == ".")
        return "".join(words), 0

    def cast(self, kind, value):
        name = " ".join(self.text(i) for i in range(kind[0], kind[1] + 1))
        self.require(INTEGER.fullmatch(name))
        text, degree = self.linear(value)
        return "static_cast<%s>(%s)" % (name, text), degree

    def single(self, i):
        """A name or a number."""
        token = self.tokens.all[i]
        if i not in self.owner:
            self.require(token.text in self.whole_constants or WHOLE.fullmatch(token.text))
            return token.text, 0
        variable = self.owner[i]
        if variable is self.counter:
            return variable.name, 1
        self.require(INTEGER.fullmatch(variable.type) and not variable.dimensions)
        self.require(not variable.is_reference and not variable.is_shared)
        self.require(variable not in self.changed and "volatile" not in variable.specifiers)
        if variable not in self.inside:
            return variable.name, 0
        # Declared in the loop: what it begins with.
        self.require(not self.analysis.changes[variable] and variable.initial is not None)
        text, degree = self.linear(variable.initial)
        return "static_cast<%s>(%s)" % (variable.type, text), degree

    # The body

    def read_body(self):
        """Finds what the body reads, and requires that it does nothing else."""
        for variable in self.inside + self.changed:
            self.number(variable)
        source = self.tokens.source
        start = self.tokens.all[self.loop.first - 1].end
        self.require("#" not in source[start : self.tokens.all[self.loop.last].end])
        for i in range(self.loop.first + 1, self.loop.last + 1):
            if i in self.owner:
                self.variable(i, self.owner[i])
            elif self.tokens.all[i].kind == "word":
                self.word(i)
            else:
                self.sign(i)

    def number(self, variable):
        """Raises NotQuick unless a variable is a number of its own, which the loop may change."""
        self.require(NUMBER.fullmatch(variable.type) and not variable.dimensions)
        self.require(not {"static", "volatile", "__shared__"} & set(variable.specifiers))
        is_const = {"const", "constexpr"} & set(variable.specifiers)
        self.require(not (is_const and variable in self.changed))
        self.require(variable not in self.analysis.pinned and not variable.is_reference)

    def sign(self, i):
        """Raises NotQuick unless what stands at an index, no word, is one that a quick loop may
        have."""
        token = self.tokens.all[i]
        if token.kind == "text" or token.text in ("->", "::", "->*", "~"):
            raise NotQuick
        if token.text in ("*", "&") and not self.analysis.is_operand_before(i):
            before = self.text(i - 1) == "&" and self.tokens.adjacent(i - 1)
            self.require(token.text == "&" and before)
        elif token.text == "&":
            self.require(self.text(i + 1) not in (">", ")"))  # a cast to a reference
        elif token.text == "(":
            self.opening(i)
        elif token.text == ")":
            before = self.text(self.tokens.match_backward(i) - 1)
            self.require(before in ("if", "for") or not self.analysis.is_changed_behind(i + 1))
        elif token.text == "[":
            self.require(i - 1 in self.owner and self.owner[i - 1].stars == "*")

    def word(self, i):
        """Raises NotQuick unless the word at an index is one that a quick loop may have."""
        word, before = self.text(i), self.text(i - 1)
        if before == ".":
            self.require(self.text(i - 2) in INDICES)
            return
        known = word in TYPE_WORDS or self.analysis.is_mathematics(word)
        known = known or word in self.analysis.constants
        known = known or word in ("if", "else", "const", "auto", "static_cast", *INDICES)
        if any(v.name == word for v in self.inside):  # where it is declared, and not before
            first = before in TYPE_WORDS or before in ("auto", "const")
            known = first or (before == "," and self.text(i + 1) in ("=", ";"))
        self.require(known and word not in self.analysis.program.functions)

    def opening(self, i):
        """A ( of the loop: no call but of a function of mathematics, or of a type."""
        before = self.tokens.all[i - 1]
        self.require(not self.is_doubled(i - 2))  # ++(x)
        if before.kind == "word":
            known = self.analysis.is_mathematics(before.text) or before.text in TYPE_WORDS
            known = known or before.text in ("if", "for", "else")
            self.require(known and i - 1 not in self.owner)
        elif before.text == ")":  # (float)(x), if (x) (y)
            first = self.tokens.match_backward(i - 1)
            words = [self.text(k) for k in range(first + 1, i - 1)]
            self.require(words and all(word in TYPE_WORDS for word in words))
        elif before.text == ">":
            angle = self.tokens.template_backward(i - 1)
            self.require(angle is None or self.text(angle - 1) == "static_cast")
        else:
            self.require(before.text != "]" and before.kind == "sign")

    def is_doubled(self, i):
        """Whether ++ or -- stands at an index."""
        sign = self.text(i)
        return sign in ("+", "-") and self.text(i + 1) == sign and self.tokens.adjacent(i)

    def variable(self, i, variable):
        """A use of a variable: a number, or a read through a pointer."""
        self.require("volatile" not in variable.specifiers)
        if NUMBER.fullmatch(variable.type) and not variable.dimensions:
            self.require(not variable.is_shared and not variable.is_reference)
            self.require(self.text(i + 1) != "(")
            return
        self.require(variable.stars == "*" and not variable.dimensions and not variable.is_shared)
        self.require(variable not in self.changed and variable not in self.inside)
        self.require(self.text(i + 1) == "[")
        close = self.tokens.match_forward(i + 1)
        self.require(not self.is_doubled(i - 2) and not self.analysis.is_changed_behind(close + 1))
        self.require(self.text(close + 1) not in ("[", ".", "->", "("))
        read = (variable.name, self.linear((i + 2, close - 1))[0])
        if read not in self.reads:
            self.reads.append(read)
