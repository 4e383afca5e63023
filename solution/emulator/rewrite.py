"""Turns CUDA C++ into plain C++ for the emulated GPU.

    python3 rewrite.py src/gpu_op.cu -o gpu_op.cu.cc

Macros do most of it (include/emulator/language.h). What they cannot do is done here:

- a launch, `kernel<<<grid, block>>>(arguments)`, becomes a call, see emulator/launch.h;
- `extern __shared__ float name[];` becomes a reference to the block's dynamic shared memory;
- a static `__shared__` variable gets a check that it fits into the 48 KB of a block.

Text is inserted, and never moved to another line, so the compiler's errors name the lines of
the original file. What is wrong with the source itself is reported as file:line: error: ...
with exit code 1.
"""

import argparse
import os
import re
import sys
from collections import namedtuple

STATIC_SHARED_BYTES = 48 * 1024

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

# Words before a parenthesis that make it no call.
NOT_CALLED = ("if", "while", "for", "switch", "return", "else", "do", "case", "throw", "sizeof")
OPENING = {"(": ")", "[": "]", "{": "}"}
CLOSING = {close: opening for opening, close in OPENING.items()}


class SourceError(Exception):
    """Something is wrong with the source at a position."""

    def __init__(self, position, message):
        super().__init__(message)
        self.position = position


# --------------------------------------------------------------------------------------------
# Tokens


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


# --------------------------------------------------------------------------------------------
# Moving about in tokens


class Tokens:
    """The tokens of one source, with the searches that the passes need."""

    def __init__(self, source):
        self.source = source
        self.all = [token for token in tokenize(source) if token.kind != "branch"]

    def text(self, index):
        """Text of a token, or "" outside of the source."""
        return self.all[index].text if 0 <= index < len(self.all) else ""

    def together(self, first, second):
        """Whether two tokens are in the same directive, or both in plain code."""
        if not (0 <= first < len(self.all) and 0 <= second < len(self.all)):
            return False
        return self.all[first].directive == self.all[second].directive

    def match_forward(self, index):
        """Index of the bracket that closes the one at `index`, or None."""
        depth = 0
        for i in range(index, len(self.all)):
            if not self.together(index, i):
                if self.all[index].directive is not None:
                    return None
                continue  # a #define in the midst of an expression
            depth += (self.text(i) in OPENING) - (self.text(i) in CLOSING)
            if depth == 0:
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


# --------------------------------------------------------------------------------------------
# Launches


def find_name(tokens, launch):
    """Index of the first token of the expression before the `<<<` at index `launch`."""
    first = None
    i = launch - 1
    while tokens.together(i, launch):
        if tokens.text(i) == ">":
            i = tokens.template_backward(i)
            i = None if i is None else i - 1
        while i is not None and tokens.text(i) in (")", "]"):
            i = tokens.match_backward(i)
            if i is None:
                break
            first = i
            called = tokens.all[i - 1] if tokens.together(i - 1, launch) else None
            is_call = called and (called.text in (")", "]", ">") or called.kind == "word")
            if not is_call or called.text in NOT_CALLED or called.text in (")", ">"):
                if tokens.text(i - 1) not in ("]",) or tokens.text(i) != "[":
                    return first
            i -= 1
        if i is None or not tokens.together(i, launch) or tokens.all[i].kind != "word":
            return first
        first = i
        if tokens.text(i - 1) == "::":
            if tokens.all[i - 2].kind != "word" and tokens.text(i - 2) != ">":
                return i - 1  # the global namespace
        elif tokens.text(i - 1) not in (".", "->"):
            return first
        first = i - 1
        i -= 2
    return first


def find_close(tokens, launch):
    """Index of the first `>` of the `>>>` that closes the `<<<` at index `launch`."""
    templates = 0
    i = launch + 1
    while tokens.together(i, launch):
        text = tokens.text(i)
        if text in OPENING:
            i = tokens.match_forward(i)
            if i is None:
                return None
        elif text in CLOSING or text == ";":
            return None
        elif text == "<":
            templates += tokens.all[i - 1].kind == "word"
        elif text == ">":
            run = closing_run(tokens, i)
            if run >= 3 and run > templates:
                return i + run - 3
            templates = max(0, templates - run)
            i += run - 1
        i += 1
    return None


def closing_run(tokens, index):
    """Number of `>` side by side from `index` on."""
    run = 1
    while tokens.text(index + run) == ">" and (
        tokens.all[index + run].start == tokens.all[index].start + run
    ):
        run += 1
    return run


def launch_edits(tokens, launch):
    """The edits for the launch whose `<<<` is at an index."""
    position = tokens.all[launch].start
    first = find_name(tokens, launch)
    if first is None:
        raise SourceError(position, "`<<<` without a kernel before it")
    begin, end = tokens.all[first].start, tokens.all[launch - 1].end
    name = " ".join(re.sub(r"\\\r?\n|%s" % COMMENT, " ", tokens.source[begin:end]).split())
    close = find_close(tokens, launch)
    if close is None:
        raise SourceError(position, "launch of `%s`: `<<<` without `>>>`" % name)
    edits = [
        Edit(begin, begin, "::emulator::kernel(EMULATOR_NAME(%s), [&](auto... emulator_args) { "
             % name),
        Edit(position, position + 3, "(emulator_args...); })("),
        Edit(tokens.all[close].start, tokens.all[close + 2].end, ")"),
    ]
    return edits + argument_edits(tokens, launch, close + 3, name)


def argument_edits(tokens, launch, index, name):
    """NULL is an integer to a template, so it becomes nullptr. Checks the parentheses, too."""
    if not tokens.together(index, launch) and tokens.all[launch].directive is not None:
        return []  # a macro that ends in >>>; the arguments stand where it is used
    position = tokens.all[launch].start
    if tokens.text(index) != "(":
        raise SourceError(position, "launch of `%s`: `(` expected after `>>>`" % name)
    last = tokens.match_forward(index)
    if last is None:
        raise SourceError(position, "launch of `%s`: `(` is not closed" % name)
    return [
        Edit(tokens.all[i].start, tokens.all[i].end, "nullptr")
        for i in range(index + 1, last)
        if tokens.text(i) == "NULL"
        and tokens.text(i - 1) in ("(", ",")
        and tokens.text(i + 1) in (")", ",")
    ]


def rewrite_launches(tokens):
    """The edits for all launches of a source."""
    edits = []
    for i, token in enumerate(tokens.all):
        # operator<<<T> is a name
        if token.text == "<<<" and tokens.text(i - 1) != "operator":
            edits += launch_edits(tokens, i)
    return edits


# --------------------------------------------------------------------------------------------
# Shared memory


def is_file_scope(tokens, index):
    """Whether a token is in no braces but those of namespaces and extern "C"."""
    depth = 0
    for i in range(index - 1, -1, -1):
        if not tokens.together(i, index) or tokens.all[index].directive is not None:
            continue
        if tokens.text(i) == "}":
            depth += 1
        elif tokens.text(i) == "{":
            if depth == 0 and not opens_namespace(tokens, i):
                return False
            depth = max(0, depth - 1)
    return tokens.all[index].directive is None


def opens_namespace(tokens, brace):
    """Whether a `{` is that of a namespace or of extern "C"."""
    i = brace - 1
    if tokens.all[i].kind == "text":
        return tokens.text(i - 1) == "extern"
    while i >= 0 and (tokens.all[i].kind == "word" or tokens.text(i) == "::"):
        if tokens.text(i) == "namespace":
            return True
        i -= 1
    return False


def declaration(tokens, index):
    """First and last index of the declaration around a `__shared__`; last is its `;`."""
    first = index
    while tokens.text(first - 1) in ("extern", "static", "volatile", "const", "__device__"):
        first -= 1
    last = index
    while tokens.together(last, index) and tokens.text(last) != ";":
        last = tokens.match_forward(last) if tokens.text(last) in OPENING else last
        if last is None:
            return first, None
        last += 1
    return first, last if tokens.together(last, index) else None


def dynamic_edits(tokens, first, last):
    """The edits for `extern __shared__ __align__(16) float name[];`."""
    edits = []
    words = []
    i = first
    while i < last and tokens.text(i) != "[":
        if tokens.text(i) in ("__align__", "alignas", "__attribute__") and (
            tokens.text(i + 1) == "("
        ):
            close = tokens.match_forward(i + 1)
            edits.append(blank(tokens, i, close))
            i = close
        elif tokens.text(i) in ("extern", "__shared__", "__device__", "static"):
            edits.append(blank(tokens, i, i))
        else:
            words.append(i)
        i += 1
    if i >= last or not words:
        return []
    name, end = tokens.all[words[-1]], tokens.all[last].start
    place = "static thread_local " if is_file_scope(tokens, first) else ""
    start = tokens.all[first].start
    edits[0] = Edit(edits[0].start, edits[0].end, place + edits[0].text[len(place):])
    assert edits[0].start == start
    return edits + [
        Edit(name.start, name.end, "(&%s)" % name.text),
        Edit(end, end, " = ::emulator::DynamicShared()"),
    ]


def blank(tokens, first, last):
    """An edit that leaves spaces, so that columns stay."""
    start, end = tokens.all[first].start, tokens.all[last].end
    return Edit(start, end, re.sub(r"[^\n]", " ", tokens.source[start:end]))


def declared_names(tokens, first, last):
    """Names of the variables of a simple declaration, or [] if it is not that simple."""
    names, i, depth = [], first, 0
    while i <= last:
        text = tokens.text(i)
        if text in ("<", "{", "="):
            return []
        if text == "[" or text in (",", ";"):
            if depth == 0 and tokens.all[i - 1].kind == "word":
                names.append(tokens.text(i - 1))
        if text in ("[", "("):
            i = tokens.match_forward(i)
        i += 1
    return names


def static_edits(tokens, first, last):
    """A check that a static shared variable fits into a block's memory."""
    names = declared_names(tokens, first, last)
    if not names or tokens.all[first].directive is not None:
        return []
    end = tokens.all[last].end
    size = " + ".join("sizeof(%s)" % name for name in names)
    check = ' static_assert(%s <= %d, "a block has %d KB of static shared memory; hint: use less,' \
            ' or dynamic shared memory");'
    return [Edit(end, end, check % (size, STATIC_SHARED_BYTES, STATIC_SHARED_BYTES // 1024))]


def rewrite_shared(tokens):
    """The edits for all shared variables of a source."""
    edits = []
    for i, token in enumerate(tokens.all):
        if token.text != "__shared__" or tokens.text(i - 1) == "define":
            continue
        first, last = declaration(tokens, i)
        if last is None:
            continue  # the compiler will complain
        is_dynamic = "extern" in (tokens.text(k) for k in range(first, i + 2))
        edits += (dynamic_edits if is_dynamic else static_edits)(tokens, first, last)
    return edits


# --------------------------------------------------------------------------------------------
# Files

PASSES = (rewrite_launches, rewrite_shared)


def apply_edits(source, edits):
    """The source with all edits made."""
    parts, position = [], 0
    for edit in sorted(edits):
        parts += [source[position : edit.start], edit.text]
        position = edit.end
    return "".join(parts) + source[position:]


def rewrite(source, path):
    """Plain C++ for a CUDA source; its compiler errors will name `path`."""
    tokens = Tokens(source)
    edits = [edit for rewrite_pass in PASSES for edit in rewrite_pass(tokens)]
    quoted = path.replace("\\", "\\\\").replace('"', '\\"')
    return '#line 1 "%s"\n' % quoted + apply_edits(source, edits)


def main():
    """Rewrites the file that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", help="CUDA source, as src/gpu_op.cu")
    parser.add_argument("-o", dest="output", required=True, help="the C++ file to write")
    arguments = parser.parse_args()
    try:
        with open(arguments.source, encoding="utf-8", errors="surrogateescape", newline="") as file:
            source = file.read()
    except OSError as error:
        print("%s: error: %s" % (arguments.source, error.strerror), file=sys.stderr)
        return 1
    try:
        text = rewrite(source, arguments.source)
    except SourceError as error:
        line = source.count("\n", 0, error.position) + 1
        print("%s:%d: error: %s" % (arguments.source, line, error), file=sys.stderr)
        return 1
    # Under its name only once it is whole, so that make does not take half a file for new.
    with open(arguments.output + ".new", "w", encoding="utf-8", errors="surrogateescape",
              newline="") as file:
        file.write(text)
    os.replace(arguments.output + ".new", arguments.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
