"""Whether a program can tell a constant from a variable: by operators and constructors.

What a second version believes to keep its value is `const` there. Where two operators differ by
that, or a template's type is deduced with it, another one might be called. Then each kernel in
which anything may be an object runs thread by thread. It goes by words alone, and so by more than
is so.
"""

from itertools import pairwise

from block_loops.hidden_calls import CLASSES, is_in_class, is_inside
from cuda_source.functions import BARRIER, CASTS, INDICES, LOADS, ORDERED, PURE
from cuda_source.shared_variables import is_file_scope
from cuda_source.statements import QUALIFIERS, TYPE_WORDS, VECTORS, Parser

# How a parameter takes what it is given: as a variable, as a constant, as what a template makes of
# it, or as anything.
VARIABLE, CONSTANT, DEDUCED, VALUE = "variable", "constant", "deduced", "value"
STREAMS = frozenset("ostream istream ofstream ifstream ostringstream stringstream FILE".split())
SIMPLE = (
    frozenset("if else for while do return break continue switch case default true false".split())
    | frozenset("nullptr sizeof auto warpSize unsigned signed inline __global__ __device__".split())
    | frozenset((*INDICES, *CASTS, BARRIER))
    | frozenset(word for word in PURE if not word.startswith("make_"))
    | (TYPE_WORDS - VECTORS) | QUALIFIERS | LOADS | ORDERED
)  # fmt: skip


class Overloads:
    """The operators and constructors of a program, and what may be told by them."""

    def __init__(self, tokens, places):
        self.tokens, self.places = tokens, places
        self.templates = self.template_parameters()
        self.aliases = self.read_aliases()
        self.classes = self.read_classes()
        self.references = self.find_references()
        self.types = set()  # words of operators' parameters, and what they stand for
        operators = self.operators()
        self.tells = self.constructors_tell() or self.operators_tell(operators)
        self.expand_types()
        self.met = {}

    # What is read

    def template_parameters(self):
        """Names of the parameters of templates that are types."""
        text, found = self.tokens.text, set()
        for word in ("typename", "class"):
            for i in self.places.get(word, ()):
                k = i + 1
                while text(k) == ".":
                    k += 1
                if text(i - 1) in ("<", ",") and text(k + 1) in (",", ">", "="):
                    found.add(text(k))
        return found

    def read_aliases(self):
        """The words that names of typedefs stand for."""
        tokens, found = self.tokens, {}
        for i in self.places.get("typedef", []) + self.places.get("using", []):
            last = Parser(tokens).semicolon(i, len(tokens.all)) or i
            words = [tokens.text(k) for k in range(i + 1, last)]
            names = words[:1]
            if tokens.text(i) == "typedef":
                names = words[-1:] + [b for a, b in pairwise(words) if a in ("&", "*")]
            elif "=" not in words:
                continue
            for name in names:
                found.setdefault(name, []).append(set(words))
        return found

    def read_classes(self):
        """How often each name is that of a class or an enum that is defined."""
        text, found = self.tokens.text, {}
        for word in (*CLASSES, "enum"):
            for i in self.places.get(word, ()):
                if text(i - 1) in ("<", ","):
                    continue
                k = i + 1
                while text(k) in ("alignas", "__align__", "class", "struct"):
                    k = (self.tokens.match_forward(k + 1) or k) + 1
                if text(k + 1) in ("{", ":", "final", "<"):
                    found[text(k)] = found.get(text(k), 0) + 1
        return found

    def is_one_type(self, name):
        """Whether a type's text means one type only, wherever it stands."""
        for word in name.split():
            others = [words for words in self.aliases.get(word, ()) if not words & set(CLASSES)]
            if self.classes.get(word, 0) + len(others) > 1:
                return False
        return True

    def find_references(self):
        """Names of types that may be references."""
        found, before = {"decltype"}, None
        while before != len(found):
            before = len(found)
            for name, groups in self.aliases.items():
                for words in groups:
                    if words & (found | {"&"}) or any("reference" in word for word in words):
                        found.add(name)
        return found

    def parameters(self, first):
        """The parameters in the brackets at an index, as lists of tokens without <...>."""
        tokens, found, part, depth = self.tokens, [], [], 0
        close = tokens.match_forward(first) or first
        for k in range(first + 1, close):
            text = tokens.text(k)
            depth -= text == ">"
            if text == "," and depth <= 0:
                found.append(part)
                part = []
            elif depth <= 0 and text != ">":
                part.append(text)
            depth += text == "<"
        return [*found, part] if part else found

    def kind(self, words):
        """How a parameter takes what it is given."""
        words = words[: words.index("=")] if "=" in words else words
        if set(words) & STREAMS:
            return VALUE
        is_hidden = any(w in self.references or "reference" in w for w in words)
        if "&" not in words:
            return VARIABLE if is_hidden else VALUE
        before = words[: words.index("&")]
        if "*" in before:
            before = before[len(before) - before[::-1].index("*") :]
        is_constant = "const" in before
        if is_hidden:
            return VARIABLE
        if set(words) & (self.templates | {"auto"}):
            return CONSTANT if is_constant else DEDUCED
        if words.count("&") == 2:
            return VALUE  # takes no variable
        return CONSTANT if is_constant else VARIABLE

    # What may be told

    def operators(self):
        """The kinds of the parameters of operators, the last one first, by their signs."""
        tokens, found = self.tokens, {}
        for i in self.places.get("operator", ()):
            first = i + 3 if tokens.text(i + 1) == "(" else i + 1
            while tokens.text(first) not in ("", "(", ";"):
                first += 1
            if tokens.text(first) == "(":
                signs = "".join(tokens.text(k) for k in range(i + 1, first))
                parts = self.parameters(first)
                self.types |= {word for part in parts for word in part}
                found.setdefault(signs, []).append([self.kind(part) for part in parts[::-1]])
        return found

    def operators_tell(self, operators):
        """Whether the operators of the program may tell a constant from a variable."""
        for signs, heads in operators.items():
            if signs == "()":
                if may_differ([head[::-1] for head in heads]):
                    return True
                continue
            is_assigned = signs in ("++", "--") or (
                signs[-1:] == "=" and signs not in ("==", "!=", "<=", ">=")
            )
            for head in heads:
                for k, kind in enumerate(head):
                    is_left = is_assigned and k == len(head) - 1 and (k == 1 or signs in "++--")
                    if kind == DEDUCED or (kind == VARIABLE and not is_left):
                        return True
            if may_differ(heads):
                return True
        return False

    def constructors_tell(self):
        """Whether constructors of the program may do so."""
        tokens = self.tokens
        for name in self.classes:
            heads = []
            for i in self.places.get(name, ()):
                is_head = tokens.text(i + 1) == "(" and tokens.text(i - 1) != "~"
                is_outside = is_file_scope(tokens, i) or is_in_class(tokens, i)
                if is_head and is_outside and not is_inside(tokens, i):
                    heads.append([self.kind(part) for part in self.parameters(i + 1)])
            if may_differ(heads):
                return True
        return False

    def expand_types(self):
        """Adds to the types of operators what they stand for."""
        before = None
        while before != len(self.types):
            before = len(self.types)
            for name in self.types & self.aliases.keys():
                self.types = self.types.union(*self.aliases[name])
        self.takes_any = bool(self.types & (self.templates | {"auto", "decltype"}))

    # What may be told in a kernel

    def problem(self, program, function):
        """Why a kernel's constants might be told, or None."""
        if self.tells and self.meets(program, function):
            return "an operator or a constructor that may tell constants apart"
        return None

    def meets(self, program, function):
        """Whether a function may use an object, as far as its words say."""
        if function not in self.met:
            self.met[function] = False  # one that calls itself is refused elsewhere
            self.met[function] = function.end is None or any(
                not self.is_simple(program, function, i)
                for i in range(function.open, function.end)
                if function.tokens.all[i].kind == "word"
            )
        return self.met[function]

    def is_simple(self, program, function, i):
        """Whether a word is no object's, nor a class's."""
        tokens, word = function.tokens, function.tokens.text(i)
        own = [v for v in function.variables() if v.name == word]
        if own:
            numbers = (TYPE_WORDS - VECTORS) | QUALIFIERS | program.aliases.keys() | {"auto"}
            return all(set(v.specifiers) <= numbers for v in own)
        if tokens.text(i - 1) in (".", "->") or word in program.aliases:
            return True
        if word in function.template_names():
            heads = [k for k in function.template_indices() if tokens.text(k) == word]
            return all(tokens.text(k - 1) in TYPE_WORDS - VECTORS for k in heads)
        if word in program.functions:
            return not any(self.meets(program, other) for other in program.functions[word])
        if word in SIMPLE:
            return word not in program.redefined
        return word in program.constants - program.enumerators


def may_differ(heads):
    """Whether a parameter takes a variable where another function's takes a constant."""
    for k in range(max(map(len, heads), default=0)):
        kinds = {head[k] for head in heads if k < len(head)}
        if DEDUCED in kinds or (VARIABLE in kinds and len(kinds) > 1):
            return True
    return False
