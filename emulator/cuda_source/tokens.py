"""Cuts preprocessed CUDA C++ into tokens, and moves about in them. rewrite.py builds on it.

The preprocessor has run (preprocess.py), so there are no macros and no conditions any more, and a
header's text stands where it was included. Its line markers, `# 12 "src/a.cu" 2`, say where each
line comes from. What comes from the system's headers has no tokens.
"""

import bisect
import os
import re
from collections import namedtuple

# kind: word, number, text (a string or character), or sign.
Token = namedtuple("Token", "kind text start end")
# Replaces source[start:end].
Edit = namedtuple("Edit", "start end text")
# A line of a file: where a marker's text begins, and what it says of that place.
Place = namedtuple("Place", "start file line")

COMMENT = r"//(?:\\\r?\n|[^\n])*|/\*[\s\S]*?(?:\*/|\Z)"
STRING = r'(?:u8|[uUL])?"(?:\\[\s\S]|[^"\\\n])*"'
LETTER = r"\\U[\da-f]{8}"  # as g++ -E writes an umlaut
TOKEN = re.compile(
    r"(?P<skip>%s|\\\r?\n|[^\S\n]+)"
    r"|(?P<newline>\n)"
    r'|(?P<raw>(?:u8|[uUL])?R"(?P<fence>[^()\\\s]{0,16})\([\s\S]*?\)(?P=fence)")'
    r"|(?P<text>%s|(?:u8|[uUL])?'(?:\\[\s\S]|[^'\\\n])*')"
    r"|(?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*)"
    r"|(?P<word>(?:[^\W\d]|%s)(?:\w|%s)*)"
    # Never >>, since two of them may close templates. `<< <` is a launch, too.
    r"|(?P<sign><<\s*<(?!<?=)|<<=|<<|<=|->\*?|::|>=|[^\s\w])" % (COMMENT, STRING, LETTER, LETTER)
)
# A directive runs to the end of its line, or further by a backslash or a comment.
DIRECTIVE = re.compile(r"#(?:\\\r?\n|%s|%s|[^\n])*" % (STRING, COMMENT))
MARKER = re.compile(
    r'^#[^\S\n]*(?:line)?[^\S\n]*(\d+) "((?:[^"\\\n]|\\.)*)"((?: \d)*)[^\S\n]*$', re.M
)
# Flags of a marker: a header begins, one has ended, and the text is the system's.
ENTERS, RETURNS, SYSTEM = "1", "2", "3"

_EMULATOR = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
INCLUDE = os.path.join(_EMULATOR, "include", "")

OPENING = {"(": ")", "[": "]", "{": "}"}
CLOSING = {close: opening for opening, close in OPENING.items()}


def unquoted(name):
    """A file's name as it is, from a line marker's."""
    return re.sub(r"\\(.)", r"\1", name)


def quoted(name):
    """A file's name as a line marker has it."""
    return '"%s"' % name.replace("\\", "\\\\").replace('"', '\\"')


class Tokenizer:
    """Cuts a source into tokens, without comments, directives and the headers of the system."""

    def __init__(self, source, path):
        self.source = source
        self.tokens = []
        self.places = [Place(0, path, 1)]
        self.headers = [False]  # whether the files that are open are the system's

    def run(self):
        """All tokens."""
        position, line_start = 0, True
        while position < len(self.source):
            if line_start and self.source[position] == "#":
                position = self.directive(position)
                continue
            match = TOKEN.match(self.source, position)
            if match is None:  # a lone quote, say; the compiler will complain
                position += 1
                continue
            self.add(match)
            if match.lastgroup != "skip":
                line_start = match.lastgroup == "newline"
            position = match.end()
        return self.tokens

    def add(self, match):
        """Adds a match unless it is white space or a comment."""
        kind, text = match.lastgroup, match.group()
        if match.group("raw"):
            kind = "text"
        if kind == "sign" and re.fullmatch(r"<<\s*<", text):
            text = "<<<"
        if kind not in ("skip", "newline"):
            self.tokens.append(Token(kind, text, match.start(), match.end()))

    def directive(self, start):
        """Reads the directive at a position; returns where to go on."""
        marker = MARKER.match(self.source, start)
        if marker is None:
            return DIRECTIVE.match(self.source, start).end()
        while self.enter(marker):
            marker = MARKER.search(self.source, marker.end())
            if marker is None:
                return len(self.source)
        return marker.end()

    def enter(self, marker):
        """Notes where a marker leads; returns whether that is one of the system's headers.

        What the system's macros become in the program's own files has the system's flag, too.
        """
        line, file = int(marker.group(1)), unquoted(marker.group(2))
        flags = marker.group(3).split()
        if ENTERS in flags:
            is_own = os.path.abspath(file).startswith(INCLUDE)
            self.headers.append(SYSTEM in flags or is_own or self.headers[-1])
        elif RETURNS in flags and len(self.headers) > 1:
            self.headers.pop()
        self.places.append(Place(marker.end() + 1, file, line))
        return self.headers[-1]


class Tokens:
    """The tokens of one source, with the searches that the passes need."""

    def __init__(self, source, path="a.cu"):
        self.source, self.path = source, path
        tokenizer = Tokenizer(source, path)
        self.all = tokenizer.run()
        self.places = tokenizer.places
        self.starts = [place.start for place in self.places]
        self.partners, self.around = self.pair_brackets()
        self.functions = None  # once functions.py has found them

    def pair_brackets(self):
        """Indices of brackets by those of their partners, and of the { around each token."""
        partners, opened, braces, around = {}, [], [], []
        for i, token in enumerate(self.all):
            is_sign = token.kind == "sign"
            if is_sign and token.text in CLOSING and opened:
                if self.all[opened[-1]].text != CLOSING[token.text]:  # a bracket is missing
                    opened = [k for k in opened if self.all[k].text == "{"]
                if opened and self.all[opened[-1]].text == CLOSING[token.text]:
                    partners[i] = opened.pop()
                    partners[partners[i]] = i
                    if token.text == "}":
                        braces.pop()
            around.append(braces[-1] if braces else None)
            if is_sign and token.text in OPENING:
                opened.append(i)
                if token.text == "{":
                    braces.append(i)
        return partners, around

    @property
    def is_balanced(self):
        """Whether each bracket has its partner."""
        brackets = [t for t in self.all if t.kind == "sign" and t.text in "()[]{}"]
        return len(brackets) == len(self.partners)

    def text(self, index):
        """Text of a token, or "" outside of the source."""
        return self.all[index].text if 0 <= index < len(self.all) else ""

    def place(self, position):
        """The file and the line of a position."""
        place = self.places[bisect.bisect_right(self.starts, position) - 1]
        return place.file, place.line + self.source.count("\n", place.start, position)

    def adjacent(self, index):
        """Whether a token touches the next one."""
        return index + 1 < len(self.all) and self.all[index].end == self.all[index + 1].start

    def match_forward(self, index):
        """Index of the bracket that closes the one at `index`, or None."""
        return self.partners.get(index) if self.text(index) in OPENING else None

    def match_backward(self, index):
        """Index of the bracket that the one at `index` closes, or None."""
        return self.partners.get(index) if self.text(index) in CLOSING else None

    def template_backward(self, index):
        """Index of the `<` that the `>` at `index` closes, or None."""
        depth = 0
        while index >= 0:
            text = self.text(index)
            if text in (";", "{"):
                return None
            if text in CLOSING:
                index = self.match_backward(index)
                if index is None:
                    return None
            depth += (text == ">") - (text == "<")
            if depth == 0 and text == "<":
                return index
            index -= 1
        return None


class SourceError(Exception):
    """Something is wrong with the source at a position."""

    def __init__(self, position, message):
        super().__init__(message)
        self.position, self.place = position, None  # or its file and line


def text_of(tokens, first, last):
    """The text of tokens first .. last on one line."""
    if first > last:
        return ""
    return " ".join(tokens.source[tokens.all[first].start : tokens.all[last].end].split())


def blank(tokens, first, last):
    """An edit that leaves spaces, so that columns stay."""
    start, end = tokens.all[first].start, tokens.all[last].end
    return Edit(start, end, re.sub(r"[^\n]", " ", tokens.source[start:end]))


def apply_edits(source, edits):
    """The source with all edits made."""
    parts, position = [], 0
    for edit in sorted(edits):
        parts += [source[position : edit.start], edit.text]
        position = edit.end
    return "".join(parts) + source[position:]


def without_prelude(source, path):
    """The text of a file itself, behind the headers that the program's options include."""
    markers = list(MARKER.finditer(source))
    # Where the file includes itself, the marker says that it is entered.
    found = [i for i, m in enumerate(markers)
             if m.group(1) == "1" and unquoted(m.group(2)) == path
             and ENTERS not in m.group(3).split()]  # fmt: skip
    if not found:
        return source
    # A `#line 1` of the program's own stands behind no such marker.
    found = [i for i in found if i > 0 and markers[i - 1].group(2).startswith("<")] or found
    # Between them stand markers of "<command-line>". The first is the prelude.
    headers = [i for i in range(1, found[-1])
               if ENTERS in markers[i].group(3).split() and not markers[i].group(2).startswith("<")
               and markers[i - 1].group(2).startswith("<")
               and not markers[i].group(2).endswith("stdc-predef.h")]  # fmt: skip
    main = markers[found[-1]]
    texts = [
        '# 1 "%s"' % markers[i].group(2)
        + source[markers[i].end() : next(m.start() for m in markers[i:] if m.group(2)[0] == "<")]
        for i in headers[1:]
    ]
    before = "".join(texts) + '# 1 "%s"\n' % main.group(2) if texts else ""
    return before + source[main.end() + 1 :]
