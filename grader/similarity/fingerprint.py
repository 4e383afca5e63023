"""The comparable part of a student's file: its tokens without names, function by function.

A file becomes a string with one character a token: "V" for a name that the student chose, "N" for a
number, "S" for a string, "T" for a type. Keywords, operators, and names of CUDA or Python have
characters of their own. Comments and layout are left out. So a position in the string is a token,
and renaming, comments, layout and the spelling of constants change nothing.

copydetect makes the fingerprints: all runs of K tokens. No fingerprint crosses the edge of a
function, so the order of functions changes nothing. None contains a token that the skeleton gave.
"""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from grader.base.errors import UsageError

#: Tokens of a fingerprint: a short statement. Fewer are alike by chance, more miss reworked copies.
K = 10

#: A file is compared up to this many tokens and characters; the solution's longest has about 5,000
#: and 40,000.
MOST_TOKENS = 40_000
MOST_CHARACTERS = 1 << 17

#: What changes nothing in what C++ code does to a reader: left out.
_PASSED_OVER = frozenset(("const", "static", "inline", "__restrict__", "__restrict", "constexpr"))
_PYTHON = (".py",)
_CUDA = (".cu", ".cuh", ".c", ".cc", ".cpp", ".h", ".hpp")

#: What opens a brace that is no body.
_INSIDE = ("extern", "namespace")
#: Of code that stands in no function.
TOP = "(top level)"

Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]


class SimilarityError(UsageError):
    """Nothing can be compared; the message says why and what to do."""


@dataclass(frozen=True)
class Token:
    """A token: its character, its text, its line from 1 and its column from 0."""

    symbol: str
    text: str
    line: int
    column: int


@dataclass(frozen=True)
class CodePiece:
    """A function, or a line or declaration outside of one: tokens `start` to `end`, without
    `end`."""

    name: str
    start: int
    end: int


@dataclass(frozen=True)
class Skeleton:
    """The part of a file that students were given.

    Attributes:
        pieces: name of a function -> its symbols.
        hashes: of all its fingerprints.
        wholes: the symbols of all its pieces, also of those between functions.
        tasks: name of a function -> the task to be written there.
    """

    pieces: dict[str, str] = field(default_factory=dict)
    hashes: frozenset[int] = frozenset()
    wholes: frozenset[str] = frozenset()
    tasks: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Fingerprint:
    """A student's file, ready to be compared.

    Attributes:
        text: as it was handed in.
        symbols: one character a token.
        lines: of each token, from 1.
        pieces: functions and what is between them, in order; together they are all tokens.
        written: whether a token is the student's own.
        starts, hashes: first token and hash of each fingerprint of what the student wrote.
        cut: whether there was more than MOST_TOKENS or MOST_CHARACTERS.
    """

    text: str
    symbols: str
    lines: Numbers
    pieces: list[CodePiece]
    written: Mask
    starts: Numbers
    hashes: Numbers
    cut: bool = False


# --- tokens ---------------------------------------------------------------------------------------


def tokens(text: str, name: str) -> list[Token]:
    """The tokens of a file by its name: Python, or C++ with CUDA, else as pygments knows it."""
    found: list[Token] = []
    line, column = 1, 0
    numbers, text = _squeezed(text)
    for kind, value in _lexer(name).get_tokens(text + "\n"):  # else a last comment is code
        symbol = _symbol(kind, value)
        joins = found and symbol in ("S", "T") and found[-1].symbol == symbol
        if symbol and not joins:
            found.append(Token(symbol, value, numbers[line - 1], column))
        breaks = value.count("\n")
        line += breaks
        column = len(value) - value.rfind("\n") - 1 if breaks else column + len(value)
        if len(found) > MOST_TOKENS:
            break
    return found


def _squeezed(text: str) -> tuple[list[int], str]:
    """(numbers of the kept lines, their text): without empty lines, and with single blanks after
    the indentation. Pygments' time grows with the square of such runs, or worse."""
    kept = [(n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
    lines = [re.sub(r"(?<=\S)\s+", " ", line.rstrip()) for _, line in kept]
    lines = [re.sub(r"^\s{100,}", " " * 100, line) for line in lines]
    return [*(n for n, _ in kept), len(text) + 1], "\n".join(lines)


@lru_cache(maxsize=8)
def _lexer(name: str) -> Any:
    from pygments.lexers import (
        get_lexer_by_name,
        get_lexer_for_filename,
    )
    from pygments.util import ClassNotFound

    # Nothing may be stripped: lines must stay where they are.
    options = {"stripnl": False, "ensurenl": False}
    if name.endswith(_PYTHON):
        return get_lexer_by_name("python", **options)
    if name.endswith(_CUDA):
        return get_lexer_by_name("cuda", **options)
    try:
        return get_lexer_for_filename(name, **options)
    except ClassNotFound:
        return get_lexer_by_name("text", **options)


@lru_cache(maxsize=1 << 16)
def _symbol(kind: Any, value: str) -> str:
    """The character of a token; "" for one that is left out."""
    from pygments import token

    Comment, Keyword, Name, Text = token.Comment, token.Keyword, token.Name, token.Text
    Number, String = token.Number, token.String

    if kind in Comment or kind in Text or kind in String.Doc or value in _PASSED_OVER:
        return ""
    if kind in String:
        return "S"
    if kind in Number:
        return "N"
    if kind in Keyword.Type:
        return "T" if not value.startswith("__") else _own(value)
    if kind in Name and kind not in Name.Builtin and not value.startswith("__"):
        return "V"
    return value if len(value) == 1 else _own(value)


@lru_cache(maxsize=4096)
def _own(value: str) -> str:
    """A character for a word, the same in every run; beyond those that other tokens use."""
    return chr(0x10000 + zlib.crc32(value.encode("utf-8", "replace")) % 0x100000)


# --- functions ------------------------------------------------------------------------------------


def pieces(found: Sequence[Token], name: str) -> list[CodePiece]:
    """The functions of a file and what lies between them, without gaps. The file need not
    compile."""
    spans = _python_spans(found) if name.endswith(_PYTHON) else _cuda_spans(found)
    result: list[CodePiece] = []
    end = 0
    for title, start, stop in spans:
        if start == stop:
            continue
        if start > end:
            result.append(CodePiece(TOP, end, start))
        result.append(CodePiece(title, start, stop))
        end = stop
    if end < len(found):
        result.append(CodePiece(TOP, end, len(found)))
    return result


def _python_spans(found: Sequence[Token]) -> Iterator[tuple[str, int, int]]:
    """Functions that are in no other function, found by indentation and named with their classes;
    and lines outside of functions."""
    classes: list[tuple[int, str]] = []
    begun: tuple[str, int, int] | None = None  # name, first token, column
    last = 0
    for index in _line_starts(found):
        token = found[index]
        if begun and token.column > begun[2]:
            continue
        yield (*(begun[:2] if begun else (TOP, last)), index)
        begun, last = None, index
        classes = [each for each in classes if each[0] < token.column]
        word = index + (token.text == "async")
        if word + 1 < len(found) and found[word].text in ("def", "class"):
            title = found[word + 1].text
            if found[word].text == "class":
                classes.append((token.column, title))
            else:
                names = [*(name for _, name in classes), title]
                begun = ".".join(names), index, token.column
    yield (*(begun[:2] if begun else (TOP, last)), len(found))


def _line_starts(found: Sequence[Token]) -> Iterator[int]:
    """The tokens that begin a line, outside brackets."""
    depth, line = 0, 0
    for index, token in enumerate(found):
        if token.line != line and depth == 0:
            yield index
        line = token.line
        depth = max(0, depth + (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}")))


def _cuda_spans(found: Sequence[Token]) -> Iterator[tuple[str, int, int]]:
    """Functions, which have parentheses before a body in braces, and other declarations. Looks
    inside extern "C" { and namespace {."""
    start, depth, title = 0, 0, ""
    for index, token in enumerate(found):
        if depth == 0 and token.text in (";", "}"):
            yield TOP, start, index + 1
            start = index + 1
        elif token.text == "{":
            if depth == 0:
                head = found[start:index]
                if not head or (head[0].text in _INSIDE and "(" not in _texts(head)):
                    start = index + 1
                    continue
                title = _title(head)
            depth += 1
        elif token.text == "}" and depth:
            depth -= 1
            if depth == 0:
                if title:
                    yield title, start, index + 1
                start = index + 1
    if depth and title:
        yield title, start, len(found)


def _texts(some: Sequence[Token]) -> list[str]:
    return [token.text for token in some]


def _title(head: Sequence[Token]) -> str:
    """The name before the first parenthesis that follows a name; "" if this is no function."""
    for one, two in pairwise(head):
        if two.text == "(" and re.fullmatch(r"(?!__)\w+", one.text):
            return one.text
    return ""


# --- fingerprints ---------------------------------------------------------------------------------


def skeleton(text: str, name: str, known: Sequence[str] = ()) -> Skeleton:
    """What students were given of a file: the skeleton's text, and other `known` texts."""
    found = tokens(text, name)
    symbols, parts = _symbols(found), pieces(found, name)
    _, hashes = _grams(_hashes(symbols), parts, np.ones(len(found), bool))
    todo = [
        (text.count("\n", 0, match.start()) + 1, match[1])
        for match in re.finditer(r"TODO \(task (\d+\.\d+)\)", text)
    ]
    bounds = {p.name: (found[p.start].line, found[p.end - 1].line) for p in parts if p.name != TOP}
    more = [skeleton(each, name) for each in known]
    return Skeleton(
        {part.name: symbols[part.start : part.end] for part in reversed(parts) if part.name != TOP},
        frozenset(hashes.tolist()).union(*(each.hashes for each in more)),
        frozenset(symbols[p.start : p.end] for p in parts).union(*(m.wholes for m in more)),
        {n: task for n, (a, b) in bounds.items() for line, task in todo if a <= line <= b},
    )


def fingerprint(text: str, name: str, given: Skeleton) -> Fingerprint:
    """The fingerprint of a student's file. `name`, its path in the skeleton, tells the language."""
    text = re.sub("\r\n?", "\n", text)
    found = tokens(text[:MOST_CHARACTERS], name)
    cut = len(found) > MOST_TOKENS or len(text) > MOST_CHARACTERS
    found = found[:MOST_TOKENS]
    symbols, parts = _symbols(found), pieces(found, name)
    every = _hashes(symbols)
    written = _written(symbols, every, parts, given)
    starts, hashes = _grams(every, parts, written)
    lines = np.array([token.line for token in found], np.int64)
    return Fingerprint(text, symbols, lines, parts, written, starts, hashes, cut)


def _symbols(found: Sequence[Token]) -> str:
    return "".join(token.symbol for token in found)


def _written(symbols: str, every: Numbers, parts: Sequence[CodePiece], given: Skeleton) -> Mask:
    """A mask of the tokens that the student wrote. A token is given if it lies in a whole piece of
    the skeleton, at the beginning or end of the skeleton's function of that name, or in any
    fingerprint of the skeleton."""
    written = np.ones(len(symbols), bool)
    for part in parts:
        own, theirs = symbols[part.start : part.end], given.pieces.get(part.name, "")
        if own in given.wholes:
            written[part.start : part.end] = False
            continue
        head = same_beginning(own, theirs)
        tail = min(same_beginning(own[::-1], theirs[::-1]), len(own) - head)
        written[part.start : part.start + head] = False
        written[part.end - tail : part.end] = False
    if given.hashes:
        known = np.array(sorted(given.hashes))
        starts, hashes = _grams(every, parts, np.ones(len(symbols), bool))
        for start in starts[np.isin(hashes, known)].tolist():
            written[start : start + K] = False
    return written


def same_beginning(one: str, two: str) -> int:
    """The length of the beginning that two strings share."""
    pairs = enumerate(zip(one, two, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(two)))


def _hashes(symbols: str) -> Numbers:
    """copydetect's hash of each run of K tokens; none for a shorter string."""
    every = np.zeros(max(0, len(symbols) - K + 1), np.int64)
    for value, places in copydetect_print(symbols).hash_idx.items() if len(every) else ():
        every[places] = value
    return every


def _grams(every: Numbers, parts: Sequence[CodePiece], written: Mask) -> tuple[Numbers, Numbers]:
    """(first tokens, hashes) of the fingerprints within one piece and within `written`."""
    piece = np.zeros(len(written), np.int64)
    for number, part in enumerate(parts):
        piece[part.start : part.end] = number
    own = np.concatenate([[0], np.cumsum(written)])
    count = len(every)
    whole = own[K : K + count] - own[:count] == K
    starts = np.flatnonzero(whole & (piece[:count] == piece[K - 1 : K - 1 + count]))
    return starts.astype(np.int64), every[starts]


def copydetect_print(symbols: str) -> Any:
    """copydetect's fingerprints of a string, all of them: a window of 1 drops none. Wider windows
    choose by Python's hash of a string, which differs from run to run.

    Raises:
        SimilarityError: copydetect is not installed.
    """
    try:
        from copydetect import CodeFingerprint  # type: ignore[import-untyped]
    except ImportError as error:
        raise SimilarityError(
            "copydetect is not installed; hint: .venv/bin/python -m pip install "
            "'dlsys-kit[similarity]'"
        ) from error
    return CodeFingerprint("", K, 1, filter=False, fp=io.StringIO(symbols, newline=""))


def piece_of(file: Fingerprint, token: int) -> CodePiece:
    """The piece that a token stands in."""
    return next(part for part in file.pieces if part.start <= token < part.end)
