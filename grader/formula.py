r"""Formulas as HTML: a small part of TeX's language, for screens and for weasyprint.

`x_{ij}`, `W^T`, `\frac{a}{b}`, `\sum_{k=1}^{K}`, `\bar{v}`, `\text{if}`, Greek letters and the
signs of SIGNS. Neither MathML, which weasyprint does not know, nor scripts, nor fonts.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator

#: Commands that stand for one sign. Those of SPACED get room on both sides.
SIGNS = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "theta": "θ",
    "lambda": "λ", "mu": "μ", "pi": "π", "sigma": "σ", "Delta": "Δ", "Theta": "Θ",
    "partial": "∂", "infty": "∞", "ell": "ℓ", "cdot": "·", "times": "×", "odot": "⊙", "le": "≤",
    "ge": "≥", "ne": "≠", "approx": "≈", "in": "∈", "to": "→", "gets": "←", "ldots": "…",
    "lfloor": "⌊", "rfloor": "⌋", "lceil": "⌈", "rceil": "⌉", "quad": "\u2003", "pm": "±",
    "R": "ℝ", "sum": "∑", "prod": "∏", "bmod": "mod",
}  # fmt: skip
SPACED = frozenset((*"·×⊙≤≥≠≈∈→←=<>+±", "mod"))
#: Names of functions, which stand upright.
NAMES = frozenset(("max", "min", "exp", "log", "softmax", "relu"))
#: Signs whose limits stand below and above them.
LARGE = frozenset(("sum", "prod", "max", "min"))
_GREEK_SMALL = frozenset("αβγδεθλμπσ")

#: A minus after one of these is a sign, not a difference.
_BEFORE_A_SIGN = frozenset("({[,=^_")

_TOKEN = re.compile(r"\\(?P<name>[A-Za-z]+)|\\(?P<sign>[{},;])|(?P<char>\S)|(?P<space>\s+)")


class FormulaError(Exception):
    """A formula can't be read; the message shows it."""


def formula_html(source: str, display: bool = False) -> str:
    """The formula as HTML; a `display` one is set on a line of its own.

    Raises:
        FormulaError: a command is unknown, or braces don't match.
    """
    inner = _Reader(source, display).everything()
    if display:
        return f'<div class="formula" role="math">{inner}</div>'
    return f'<span class="math" role="math">{inner}</span>'


class _Reader:
    """Reads a formula from left to right."""

    def __init__(self, source: str, display: bool) -> None:
        self._source, self._display = source, display
        self._tokens = list(_tokens(source))
        self._at = 0

    def everything(self) -> str:
        parts = []
        while self._at < len(self._tokens):
            if self._peek() == "}":
                self._fail("a } without a {")
            parts.append(self._item())
        return "".join(parts)

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self._at += 1
        return token

    def _fail(self, what: str) -> None:
        raise FormulaError(f"formula ${self._source}$: {what}")

    def _item(self) -> str:
        """One base with what is set below and above it."""
        token = self._peek()
        base = self._base()
        below = above = ""
        while self._peek() in ("_", "^"):
            if self._next() == "_":
                below = self._base()
            else:
                above = self._base()
        if self._display and token[1:] in LARGE and (below or above):
            return _stacked(base, below, above)
        lower = f"<sub>{below}</sub>" if below else ""
        return base + lower + (f"<sup>{above}</sup>" if above else "")

    def _base(self) -> str:
        """A group in braces, a command with what it takes, or one sign."""
        token = self._next()
        if token == "{":
            return self._group()
        if token in ("", "}", "_", "^"):
            self._fail(f"something is missing before {token or 'the end'!r}")
        if token.startswith("\\"):
            return self._command(token[1:])
        if token == "-" and (self._at < 2 or self._tokens[self._at - 2] in _BEFORE_A_SIGN):
            return "−"
        return _sign(token)

    def _group(self) -> str:
        parts = []
        while self._peek() != "}":
            if not self._peek():
                self._fail("a { without a }")
            parts.append(self._item())
        self._next()
        return "".join(parts)

    def _command(self, name: str) -> str:
        takes: dict[str, Callable[[], str]] = {
            "frac": self._fraction,
            "bar": lambda: f'<span class="over">{self._base()}</span>',
            "text": self._upright,
            "mathbf": lambda: f"<b>{self._base()}</b>",
            "sqrt": lambda: f'√<span class="over">{self._base()}</span>',
        }
        if name in takes:
            return takes[name]()
        if name in NAMES:
            return f'<span class="name">{name}</span>'
        if name not in SIGNS:
            self._fail(f"unknown command \\{name}")
        large = self._display and name in LARGE
        return f'<span class="large">{SIGNS[name]}</span>' if large else _sign(SIGNS[name])

    def _fraction(self) -> str:
        top, bottom = self._base(), self._base()
        if not self._display:
            return f"{top}\u2009/\u2009{bottom}"
        inner = f'<span class="top">{top}</span><span class="bottom">{bottom}</span>'
        return f'<span class="fraction">{inner}</span>'

    def _upright(self) -> str:
        """The words of a \\text{...}, as they stand in the source."""
        if self._next() != "{":
            self._fail("\\text takes {words}")
        words = []
        while self._peek() != "}":
            if not self._peek():
                self._fail("a { without a }")
            words.append(self._next())
        self._next()
        return f'<span class="words">{html.escape("".join(words))}</span>'


def _tokens(source: str) -> Iterator[str]:
    """Commands with their backslash, single signs; blanks count within \\text alone."""
    inside = False
    for match in _TOKEN.finditer(source):
        if match["name"]:
            inside = inside or match["name"] == "text"
            yield "\\" + match["name"]
        elif match["sign"]:
            yield {"{": "❴", "}": "❵", ",": "\u2009", ";": "\u2002"}[match["sign"]]
        elif match["char"]:
            inside = inside and match["char"] != "}"
            yield match["char"]
        elif inside:
            yield " "


def _sign(sign: str) -> str:
    """A letter in italics, a number or bracket upright, a relation with room around it."""
    if sign in ("❴", "❵"):
        return "{" if sign == "❴" else "}"
    if sign == "-":
        return "<span class='op'>−</span>"
    if sign in SPACED:
        return f"<span class='op'>{html.escape(sign)}</span>"
    if sign == ",":
        return ",\u2009"
    if (sign.isascii() and sign.isalpha()) or sign in _GREEK_SMALL or sign == "ℓ":
        return f"<i>{sign}</i>"
    return html.escape(sign)


def _stacked(base: str, below: str, above: str) -> str:
    inner = f'<span class="above">{above or "&nbsp;"}</span>{base}'
    return f'<span class="stack">{inner}<span class="below">{below}</span></span>'
