"""The beginning of each kernel: on the host it launches itself, see emulator/launch.h.

`kernel<<<grid, block>>>(arguments)` is a call of the kernel as any other, so the compiler finds the
overload, converts the arguments and computes default arguments, once and on the host, as nvcc has
it. What a kernel was called with it then hands to each thread.
"""

from cuda_source.functions import ATTRIBUTES, NO_FUNCTIONS, declaration_start
from cuda_source.launches import replaced
from cuda_source.shared_variables import opens_namespace
from cuda_source.statements import QUALIFIERS, TYPE_WORDS
from cuda_source.tokens import OPENING, Edit

# Words that are no names of parameters, beside those of types.
NO_NAMES = QUALIFIERS | TYPE_WORDS | {"typename", "class", "struct", "enum", "union", "auto"}
# What may stand behind the parameters of a kernel.
BEHIND_PARAMETERS = ("{", ";", "->", "noexcept", "throw", "requires", "[", *ATTRIBUTES)
QUESTION = (
    "{ if (!emulator_in_kernel) return ::emulator::start(__func__, %(thread)s, "
    "[%(by)s](const auto& emulator_block) -> decltype(%(own)s(%(block)s)) "
    "{ return %(own)s(%(block)s); }%(more)s); "
)
# What each thread calls: with numbers and pointers alone, and with any arguments.
OF_NUMBERS = "[=]() EMULATOR_UNCHECKED { %(own)s(%(names)s); }"
OF_ANY = "::emulator::ThreadOf<%(types)s>{static_cast<void (*)(%(types)s)>(%(own)s)%(more)s}"


class Head:
    """The parts of a kernel's definition, as token indices."""

    def __init__(self, tokens, first, name, opening, brace):
        self.tokens, self.first, self.name, self.open = tokens, first, name, opening
        self.brace, self.close = brace, tokens.match_forward(opening)


def find_heads(tokens):
    """The heads of all kernels that have bodies, also of specialisations."""
    found = {}
    for i, token in enumerate(tokens.all):
        head = find_head(tokens, i) if token.text == "__global__" else None
        if head is not None:
            found[head.brace] = head
    return list(found.values())


def find_head(tokens, index):
    """The head that a `__global__` belongs to, or None."""
    i, name, depth = index, None, 0
    while tokens.text(i) not in ("", ";", "}"):
        close = tokens.match_forward(i)
        if tokens.text(i) in OPENING and close is None:
            return None
        if name is None and tokens.text(i) == "(" and tokens.text(close + 1) in BEHIND_PARAMETERS:
            name, opening = name_before(tokens, i), i
        elif name is not None and depth == 0 and tokens.text(i) == "{":
            return Head(tokens, declaration_start(tokens, index), name, opening, i)
        elif name is not None:  # a type behind `->`
            depth += (tokens.text(i) == "<") - (tokens.text(i) == ">")
        i = (i if close is None else close) + 1
    return None


def name_before(tokens, i):
    """Index of the name before a parenthesis, past the <3> of a specialisation; or None."""
    if tokens.text(i - 1) == ">":
        i = tokens.template_backward(i - 1)
    is_name = i and tokens.all[i - 1].kind == "word" and tokens.text(i - 1) not in NO_FUNCTIONS
    return i - 1 if is_name else None


def pieces(tokens, first, last):
    """Index pairs of what stands between commas, outside of brackets of all kinds."""
    found, begin, depth, i = [], first, 0, first
    while i <= last:
        text = tokens.text(i)
        if text in OPENING:
            i = tokens.match_forward(i) or i
        elif text in "<>":
            depth += 1 if text == "<" else -1
        elif text == "," and depth == 0:
            found.append((begin, i - 1))
            begin = i + 1
        i += 1
    return [*found, (begin, last)] if begin <= last else found


def outside(tokens, first, last):
    """The indices of the tokens that stand in no brackets, those of templates included."""
    found, depth, i = [], 0, first
    while i <= last:
        depth -= tokens.text(i) == ">"
        if depth == 0:
            found.append(i)
        depth += tokens.text(i) == "<"
        i = (tokens.match_forward(i) or i) + 1
    return found


def template_end(tokens, first):
    """Index of the > that closes the template's < at an index; defaults may stand within."""
    depth, i = 0, first
    while i < len(tokens.all):
        if tokens.text(i) in OPENING:
            i = tokens.match_forward(i) or i
        depth += (tokens.text(i) == "<") - (tokens.text(i) == ">")
        if depth == 0:
            return i
        i += 1
    return first


class Parameter:
    """One parameter: its name, made up if it has none, and the edit that says it."""

    def __init__(self, tokens, first, last, made_up):
        self.tokens, self.edits = tokens, []
        end = self.before_default(first, last)
        outer = [tokens.text(i) for i in outside(tokens, first, end)]
        self.is_pack = "." in outer
        place = self.place(first, end)
        if self.is_name(first, place):
            self.name = tokens.text(place)
        else:
            self.name, at = made_up, tokens.all[place].end
            self.edits.append(Edit(at, at, " " + made_up))
        self.given = self.name + "..." * self.is_pack
        self.type = "::emulator::Bare<decltype(%s)>%s" % (self.name, "..." * self.is_pack)
        # The others may be objects.
        words = {word for word in outer if word != self.name}
        self.is_number = "*" in words or words <= TYPE_WORDS | QUALIFIERS
        self.is_const = "const" in words

    def before_default(self, first, last):
        """Index of the last token before `= value`."""
        i, depth = first, 0
        while i <= last:
            depth += (self.tokens.text(i) == "<") - (self.tokens.text(i) == ">")
            if self.tokens.text(i) == "=" and depth == 0:
                return i - 1
            if self.tokens.text(i) in OPENING:
                i = self.tokens.match_forward(i) or i
            i += 1
        return last

    def place(self, first, end):
        """Index of the name, or of what a name would stand behind."""
        text, i = self.tokens.text, first
        while text(i) == "[" and text(i + 1) == "[":  # an attribute
            i = self.tokens.match_forward(i) + 1
        depth = 0
        while i <= end:
            if text(i) == "(" and text(i + 1) in ("*", "&") and depth == 0:
                return self.inner_place(i)  # of a pointer to a function or array
            if (
                text(i) in ("[", "(")
                and depth == 0
                and text(i - 1) not in (*ATTRIBUTES, "decltype")
            ):
                return i - 1
            depth += (text(i) == "<") - (text(i) == ">")
            if text(i) in OPENING:
                i = self.tokens.match_forward(i) or i
            i += 1
        return end

    def inner_place(self, i):
        """The same within the ( of a declarator, as `(*name)`, `(*name[2])`, `(*(*name)(int))`."""
        text, i = self.tokens.text, i + 1
        while text(i) in ("*", "&", *QUALIFIERS):
            i += 1
        if text(i) == "(" and text(i + 1) in ("*", "&"):
            return self.inner_place(i)
        return i if self.tokens.all[i].kind == "word" else i - 1

    def is_name(self, first, i):
        """Whether a token is a parameter's name, and not the last word of its type."""
        token, before = self.tokens.all[i], self.tokens.text(i - 1)
        if token.kind != "word" or token.text in NO_NAMES or before == "::" or i == first:
            return False
        words = {self.tokens.text(k) for k in range(first, i)}
        return before == "typename" or not words <= QUALIFIERS | {"struct", "enum", "union"}


def parameters_of(tokens, first, last, made_up):
    """The parameters between two indices."""
    listed = pieces(tokens, first, last)
    if len(listed) == 1 and tokens.text(first) == "void" and first == last:
        return []
    return [Parameter(tokens, *pair, made_up % i) for i, pair in enumerate(listed)]


def template_parameters(head):
    """The parameters of a kernel's template; none for a specialisation."""
    tokens = head.tokens
    if tokens.text(head.first) != "template":
        return []
    close = template_end(tokens, head.first + 1)
    return parameters_of(tokens, head.first + 2, close - 1, "emulator_type_%d")


def namespaces_of(head):
    """The way to a kernel from outside, `::a::b::`."""
    tokens, brace, way = head.tokens, head.tokens.around[head.brace], "::"
    while brace is not None:
        first = brace - 1
        while first >= 0 and (tokens.all[first].kind == "word" or tokens.text(first) == "::"):
            first -= 1
        words = [tokens.text(i) for i in range(first + 1, brace)]
        if "namespace" in words and opens_namespace(tokens, brace):
            name = "".join(words[words.index("namespace") + 1 :])
            way = "::%s%s" % (name, way) if name else way
        brace = tokens.around[brace]
    return way


def own_name(head, kinds, names):
    """What a kernel calls itself within its body: its name with the template's arguments."""
    tokens, name = head.tokens, head.tokens.text(head.name)
    if name in names:  # a parameter hides it
        name = namespaces_of(head) + name
    if head.open > head.name + 1:
        written = tokens.source[tokens.all[head.name].end : tokens.all[head.open].start]
        return name + " ".join(written.split())
    packs = [i for i, kind in enumerate(kinds) if kind.is_pack]
    if packs and packs[0] < len(kinds) - 1:  # the rest follows from the arguments
        kinds = kinds[: packs[0]]
    return "%s<%s>" % (name, ", ".join(kind.given for kind in kinds)) if kinds else name


def starts(tokens, check):
    """The edits that have each kernel launch itself; `check(brace)` is what threads ask first."""
    edits = []
    for head in find_heads(tokens):
        kinds = template_parameters(head)
        parameters = parameters_of(tokens, head.open + 1, head.close - 1, "emulator_value_%d")
        names = [parameter.given for parameter in parameters]
        block = ["::emulator::KernelOf<%d>()" % head.name, "emulator_block", *names]
        # g++ finds no function of a constant pack by its type.
        of_numbers = all(each.is_number for each in parameters)
        of_numbers = of_numbers or any(each.is_pack and each.is_const for each in parameters)
        words = {
            "own": own_name(head, kinds, {parameter.name for parameter in parameters}),
            "names": ", ".join(names), "block": ", ".join(block),
            "types": ", ".join(parameter.type for parameter in parameters),
            "more": "".join(", " + name for name in names), "by": "=" if of_numbers else "&",
        }  # fmt: skip
        words["thread"] = (OF_NUMBERS if of_numbers else OF_ANY) % words
        question = QUESTION % words
        edits.append(replaced(tokens, head.brace, head.brace, question + check(head.brace)))
        edits += [edit for parameter in [*kinds, *parameters] for edit in parameter.edits]
    return edits
