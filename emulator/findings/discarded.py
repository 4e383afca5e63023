"""Tells whether a statement throws away what a function returns, from the text of a source.

`cudaMemset(p, 0, n);` does; in `check(cudaMemset(p, 0, n));` it is perhaps looked at, as in
everything else.
"""

import re

# Comments and literals, which are made blank; newlines stay.
BLANKED = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])*'""", re.DOTALL
)
# Behind the condition of these a statement begins.
BEFORE_STATEMENTS = ("if", "for", "while", "switch")


def blanked(text):
    """The text with spaces in place of comments and literals."""
    return BLANKED.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def closing(text, start):
    """Where the parenthesis that opens at `start` closes, or -1."""
    depth = 0
    for i in range(start, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if depth == 0:
            return i
    return -1


def opening(text, end, pair="()"):
    """Where the parenthesis that closes at `end` opens, or -1."""
    depth = 0
    for i in range(end, -1, -1):
        depth += (text[i] == pair[1]) - (text[i] == pair[0])
        if depth == 0:
            return i
    return -1


def begins_statement(text, start):
    """Whether a statement begins at `start`, for certain."""
    before = text[:start].rstrip()
    if before.endswith("::"):  # the global namespace's
        before = before[:-2].rstrip()
    if before.endswith((";", "{", "}")):
        return True
    if before.endswith(")"):
        word = re.search(r"(\w+)\s*$", before[: max(opening(before, len(before) - 1), 0)])
        return bool(word) and word.group(1) in BEFORE_STATEMENTS
    word = re.search(r"(?<!\w)(\w+)$", before)
    return bool(word) and word.group(1) in ("else", "do")


def is_statement(text, start, end):
    """Whether the call text[start:end] is a whole statement, and not the value of a block."""
    rest = text[end:].lstrip()
    if not rest.startswith(";") or not begins_statement(text, start):
        return False
    last = re.match(r"\s*;\s*}(?=\s*\))", text[end:])
    if last is None:
        return True
    block = opening(text, end + last.end() - 1, "{}")
    return not text[: max(block, 0)].rstrip().endswith("(")  # ({ ...; call(); })


def calls(text, function):
    """The (start, end) of the calls of a function in a text, end behind the parenthesis."""
    for match in re.finditer(r"(?<![\w.])%s\s*(<[^;(){}]*>\s*)?\(" % re.escape(function), text):
        end = closing(text, match.end() - 1)
        if end >= 0:
            yield match.start(), end + 1


def is_discarded(text, line, function):
    """Whether all calls of a function that begin at a line (from 1) are statements of their own.

    False too if there are none, or they stand in a macro.
    """
    lines = text.split("\n")
    if not 1 <= line <= len(lines) or lines[line - 1].lstrip().startswith("#"):
        return False
    if line > 1 and lines[line - 2].rstrip().endswith("\\"):
        return False
    text = blanked(text)
    start = sum(len(one) + 1 for one in lines[: line - 1])
    end = start + len(lines[line - 1])
    found = [call for call in calls(text, function) if start <= call[0] < end]
    return bool(found) and all(is_statement(text, *call) for call in found)


def function_of(finding):
    """The function whose error nobody read, or None."""
    if finding.kind != "call error unread":
        return None
    return (finding.detail or "").partition(":")[0]


def is_perhaps_read(finding):
    """Whether what a failed call returned may have been looked at."""
    function = function_of(finding)
    if function is None:
        return False
    if finding.at is None:
        return True
    try:
        with open(finding.at.file, encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError:
        return True
    return not is_discarded(text, finding.at.line, function)
