"""Cuts CUDA C++ into tokens, and moves about in them. rewrite.py builds on it."""

import re
from collections import namedtuple

# directive: None in plain code, else the number of the #define that the token is in.
# kind: word, number, text (a string or character), sign, or branch (#if and its like).
Token = namedtuple("Token", "kind text start end directive")
# Replaces source[start:end].
Edit = namedtuple("Edit", "start end text")

COMMENT = r"//(?:\\\r?\n|[^\n])*|/\*[\s\S]*?(?:\*/|\Z)"
STRING = r'(?:u8|[uUL])?"(?:\\[\s\S]|[^"\\\n])*"'
TOKEN = re.compile(
    r"(?P<skip>%s|\\\r?\n|[^\S\n]+)"
    r"|(?P<newline>\n)"
    r'|(?P<raw>(?:u8|[uUL])?R"(?P<fence>[^()\\\s]{0,16})\([\s\S]*?\)(?P=fence)")'
    r"|(?P<text>%s|(?:u8|[uUL])?'(?:\\[\s\S]|[^'\\\n])*')"
    r"|(?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*)"
    r"|(?P<word>[^\W\d]\w*)"
    # Never >>, since two of them may close templates.
    r"|(?P<sign><<<|<<=|<<|<=|->\*?|::|>=|[^\s\w])" % (COMMENT, STRING)
)
# A directive runs to the end of its line, or further by a backslash or a comment.
DIRECTIVE = re.compile(r"#(?:\\\r?\n|%s|%s|[^\n])*" % (STRING, COMMENT))
DIRECTIVE_NAME = re.compile(r"#(?:[^\S\n]|\\\r?\n)*(\w*)")
# A line of an inactive region that may end it.
CONDITIONAL = re.compile(r"^[^\S\n]*#[^\S\n]*(if|ifdef|ifndef|else|elif|endif)\b", re.MULTILINE)
BRANCHES = ("if", "ifdef", "ifndef", "else", "elif", "endif")


OPENING = {"(": ")", "[": "]", "{": "}"}
CLOSING = {close: opening for opening, close in OPENING.items()}


class Tokenizer:
    """Cuts a source into tokens, without comments, directives other than #define, and #if 0."""

    def __init__(self, source):
        self.source = source
        self.tokens = []
        self.directives = 0

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
            self.add(match, None)
            if match.lastgroup != "skip":
                line_start = match.lastgroup == "newline"
            position = match.end()
        return self.tokens

    def add(self, match, directive):
        """Adds a match unless it is white space or a comment."""
        kind = match.lastgroup
        if match.group("raw"):
            kind = "text"
        if kind not in ("skip", "newline"):
            token = Token(kind, match.group(), match.start(), match.end(), directive)
            self.tokens.append(token)

    def directive(self, start):
        """Reads the directive at a position; returns where to go on."""
        end = DIRECTIVE.match(self.source, start).end()
        match = DIRECTIVE_NAME.match(self.source, start)
        name, position = match.group(1), match.end()
        if name in BRANCHES:
            self.tokens.append(Token("branch", name, start, end, None))
            condition = re.sub(COMMENT, "", self.source[position:end]).strip()
            return self.skip_inactive(end) if name == "if" and condition == "0" else end
        if name == "define":
            self.directives += 1
            while position < end:
                match = TOKEN.match(self.source, position, end)
                if match is not None:
                    self.add(match, self.directives)
                position = match.end() if match else position + 1
        return end

    def skip_inactive(self, position):
        """The position of the directive that ends an `#if 0` region."""
        depth = 0
        for match in CONDITIONAL.finditer(self.source, position):
            name = match.group(1)
            if depth == 0 and name in ("else", "elif", "endif"):
                return match.start() + match.group().index("#")
            depth += {"endif": -1, "else": 0, "elif": 0}.get(name, 1)
        return len(self.source)


def tokenize(source):
    """The tokens of a source."""
    return Tokenizer(source).run()


class Tokens:
    """The tokens of one source, with the searches that the passes need."""

    def __init__(self, source):
        self.source = source
        self.all = [token for token in tokenize(source) if token.kind != "branch"]

    def text(self, index):
        """Text of a token, or "" outside of the source."""
        return self.all[index].text if 0 <= index < len(self.all) else ""

    def is_defined(self, index):
        """Whether a token is the name that a #define defines."""
        directive = self.all[index].directive
        return directive is not None and not self.together(index - 1, index)

    def together(self, first, second):
        """Whether two tokens are in the same directive, or both in plain code."""
        if not (0 <= first < len(self.all) and 0 <= second < len(self.all)):
            return False
        return self.all[first].directive == self.all[second].directive

    def match_forward(self, index):
        """Index of the bracket that closes the one at `index`, or None."""
        open_brackets = []
        for i in range(index, len(self.all)):
            if not self.together(index, i):
                if self.all[index].directive is not None:
                    return None
                continue  # a #define in the midst of an expression
            text = self.text(i)
            if text in OPENING:
                open_brackets.append(text)
            elif text in CLOSING and open_brackets.pop() != CLOSING[text]:
                return None
            if not open_brackets:
                return i
        return None

    def match_backward(self, index):
        """Index of the bracket that the one at `index` closes, or None."""
        depth = 0
        for i in range(index, -1, -1):
            if self.together(index, i):
                depth += (self.text(i) in CLOSING) - (self.text(i) in OPENING)
                if depth == 0:
                    return i
        return None

    def template_backward(self, index):
        """Index of the `<` that the `>` at `index` closes, or None."""
        depth = 0
        while index >= 0:
            text = self.text(index)
            if text in (";", "{", "}"):
                return None
            if text in (")", "]"):
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
        self.position = position


def blank(tokens, first, last):
    """An edit that leaves spaces, so that columns stay."""
    start, end = tokens.all[first].start, tokens.all[last].end
    return Edit(start, end, re.sub(r"[^\n]", " ", tokens.source[start:end]))
