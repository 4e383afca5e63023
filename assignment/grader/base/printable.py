"""Makes any text safe to show: a submission chooses what it prints."""

from __future__ import annotations

import re

#: Longest line that is shown, in characters.
LINE = 1000

# What XML forbids: controls but tab and line feed, halves of surrogate pairs, non-characters.
# With them what changes the order of the text around it, which could make a report read wrong.
_UNSAFE = re.compile(
    "[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
    "|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
# Colours and other commands to a terminal.
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?)")


def plain(text: str) -> str:
    """`text` without what could harm a terminal or a file: control characters and lone
    surrogates."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", "", text)


def printable(text: object) -> str:
    """The text as every terminal, browser and XML reader takes it.

    Commands to a terminal are left out, other unsafe characters are written as "\\x07" or
    "\\u202e"; a line of more than LINE characters is cut, and says so.
    """
    safe = _UNSAFE.sub(_escape, _ANSI.sub("", str(text).replace("\r\n", "\n")))
    return "\n".join(_short(line) for line in safe.split("\n"))


# What makes a cell a formula in a spreadsheet; the wide and small signs do in the languages of East
# Asia.
_SIGN = "[=+\\-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b]"
# What nobody sees before it, and some spreadsheets leave out.
_BLANK = (
    "[\\s\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0]*"
)
_FORMULA = re.compile(rf"{_BLANK}{_SIGN}|[\t\r\n]")
# Where a comma is the decimal point, a semicolon ends a cell, whatever quotes stand around it.
_INNER = re.compile(rf"([;\t]{_BLANK})(?={_SIGN})")
_QUOTED = re.compile(rf"^'(?={_BLANK}{_SIGN})|(?<=[;\t])({_BLANK})'(?={_SIGN})")


def csv_cell(text: object) -> str:
    """Text for a cell of a CSV file: printable, on one line, and never a formula.

    What a spreadsheet would take for a formula gets a `'` in front, also behind a semicolon or a
    tab, at which some split a cell. Numbers that we computed need none of this, and must not go
    through it: a negative one would become text.
    """
    safe = _INNER.sub(r"\1'", " ".join(printable(text).split("\n")))
    return f"'{safe}" if _FORMULA.match(safe) else safe


def from_csv_cell(cell: str) -> str:
    """The text of a cell, without what `csv_cell` put into it."""
    return _QUOTED.sub(lambda found: found[1] or "", cell)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def _short(line: str) -> str:
    more = len(line) - LINE
    return line if more <= 0 else f"{line[:LINE]}... ({more:,} more characters)"
