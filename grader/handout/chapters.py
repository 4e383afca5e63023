"""Chapters of the handout: Jinja and Markdown to HTML.

Jinja fills in what is generated from the rubric and from measured figures, then Markdown becomes
HTML. `$...$` and `$$...$$` are formulas, `![words for screen readers](picture:NAME "caption")` is a
picture drawn by code, and what stands behind the language of a block of code is for the tests.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateError
from markupsafe import Markup

from grader import __version__
from grader.checks.registry import CHECKS, Check
from grader.course.rubric import ALWAYS, Row, Rubric
from grader.handout.memory_graph import GraphError
from grader.handout.pictures import MEASURED, PICTURES, STEPS, read_peak, reference_graph, size_text

FORMULA = re.compile(
    r"(?P<code>^(?:```|~~~).*?^(?:```|~~~)[ \t]*$|`[^`\n]+`)"
    r"|\$\$(?P<display>.+?)\$\$|\$(?P<inline>[^\s$](?:[^$\n]*[^\s$])?)\$",
    re.S | re.M,
)
_HINT = "hint: python3 -m pip install 'dlsys-kit[handout]'"
_SIZE = 16  # pixels, that formulas are drawn in
_EM = 14.5  # of these, for 1 em of the page: STIX's letters are smaller than those of the text


class HandoutError(Exception):
    """The handout can't be made; the message names the chapter, or what to install."""


class FormulaError(Exception):
    """A formula can't be read; the message shows it."""


@dataclass(frozen=True)
class Heading:
    """An entry of the contents."""

    level: int
    anchor: str
    text: Markup


@dataclass(frozen=True)
class Chapter:
    """A chapter as HTML, its first heading included."""

    name: str
    part: int | None
    body: Markup
    headings: list[Heading]


def render_markdown(
    path: Path,
    rubric: Rubric,
    parts: frozenset[int] | None = None,
    checks: Mapping[str, Check] = CHECKS,
) -> str:
    """The chapter's Markdown, with what Jinja fills in.

    Args:
        path: of the chapter.
        rubric: whose tasks and points they are.
        parts: numbers of the parts that are told of; None: all.
        checks: name in the rubric -> check, for its sentence.

    Raises:
        HandoutError: the template is wrong.
    """
    environment = Environment(
        loader=FileSystemLoader(path.parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(number=lambda value: f"{value:g}", size=size_text)
    try:
        return environment.get_template(path.name).render(**_facts(rubric, parts, checks))
    except (TemplateError, GraphError) as error:
        line = f":{error.lineno}" if hasattr(error, "lineno") else ""
        raise HandoutError(f"{path}{line}: {error}") from error


def _facts(
    rubric: Rubric, parts: frozenset[int] | None, checks: Mapping[str, Check]
) -> dict[str, Any]:
    """The data that chapters may use, so that none is typed by hand. Of hidden checks it has the
    number and the points alone."""
    wanted = [p for p in rubric.parts if parts is None or p in parts]
    return {
        "rubric": rubric,
        "version": __version__,
        "parts": {number: rubric.parts[number] for number in wanted},
        "points": lambda part: sum(row.points for row in rows_of(rubric, part)),
        "rows": lambda part: [row for row in rows_of(rubric, part) if row.visible == ALWAYS],
        "hidden": lambda part: [row for row in rows_of(rubric, part) if row.visible != ALWAYS],
        "tasks": lambda part: tasks_of(rubric, part),
        "task_points": lambda task: sum(row.points for row in rubric.rows if row.task == task),
        "given": [row for row in rubric.rows if not row.task and row.visible == ALWAYS],
        "measured": json.loads(MEASURED.read_text()),
        "steps": json.loads(STEPS.read_text()),
        "kernel": _kernel,
        "peak": read_peak(),
        "graph": reference_graph,
        "sentence": lambda check: _sentence(checks, check),
    }


def rows_of(rubric: Rubric, part: int) -> list[Row]:
    """The checks of a part, in the order of its tasks."""
    rows = [row for row in rubric.rows if row.task.partition(".")[0] == str(part)]
    return sorted(rows, key=lambda row: int(row.task.partition(".")[2]))


def tasks_of(rubric: Rubric, part: int) -> list[str]:
    """The ids of a part's tasks, in order."""
    tasks = [task for task in rubric.tasks if task.partition(".")[0] == str(part)]
    return sorted(tasks, key=lambda task: int(task.partition(".")[2]))


def _sentence(checks: Mapping[str, Check], check: str) -> str:
    """A check's sentence on one line; "" for the build."""
    said = (checks[check].__doc__ or "") if check in checks else ""
    return " ".join(said.split())


def _kernel(name: str) -> dict[str, Any]:
    """The measured figures of a kernel."""
    for entry in json.loads(MEASURED.read_text())["kernels"]:
        if entry["name"] == name:
            return dict(entry)
    raise HandoutError(f"{MEASURED.name} has no kernel {name!r}")


def to_chapter(name: str, part: int | None, markdown: str, style: Callable[[str], str]) -> Chapter:
    """A chapter from its Markdown. `style` maps each picture to what stands in its place.

    Raises:
        HandoutError: a formula, a picture or a heading is wrong.
    """
    kept: list[str] = []
    try:
        tokens = _parser().parse(FORMULA.sub(lambda match: _keep(match, kept), markdown))
    except FormulaError as error:
        raise HandoutError(f"{name}: {error}") from error
    headings = _number_headings(name, tokens)
    body = _parser().renderer.render(tokens, _parser().options, {"style": style, "name": name})
    body = re.sub("<p>(\ue000\\d+\ue001)</p>", r"\1", body)
    body = re.sub("\ue000\\d+\ue001[,.;:)]+", r'<span class="tied">\g<0></span>', body)
    body = re.sub("\ue000(\\d+)\ue001", lambda match: kept[int(match[1])], body)
    return Chapter(name, part, Markup(body), [_filled(h, kept) for h in headings])


def _keep(match: re.Match[str], kept: list[str]) -> str:
    """Replaces formulas by placeholders, so that Markdown leaves them alone; code stays."""
    if match["code"] is not None:
        return match[0]
    display = match["display"] is not None
    svg = formula_svg(match["display"] if display else match["inline"], display)
    kept.append(f'<div class="formula">{svg}</div>' if display else svg)
    return f"\ue000{len(kept) - 1}\ue001"


def formula_svg(source: str, display: bool = False) -> str:
    """A formula in TeX's language as SVG that stands on the line and has the text's colour.

    Raises:
        FormulaError: a command is unknown, or braces don't match.
        HandoutError: ziamath is missing.
    """
    try:
        from ziafont.config import config
        from ziamath.zmath import Latex
    except ImportError as error:
        raise HandoutError(f"ziamath is missing; {_HINT}") from error
    config.svg2 = False  # no <symbol>, whose ids a page would have twice
    config.precision = 2
    source = " ".join(source.split())
    braces = source.replace(r"\{", "").replace(r"\}", "")
    if braces.count("{") != braces.count("}"):
        raise FormulaError(f"{source}: a brace without the other one")
    try:
        made = Latex(source, size=_SIZE, color="currentColor", inline=not display)
    except Exception as error:  # whatever a library of parsers raises
        raise FormulaError(f"{source}: {type(error).__name__} {error}") from error
    unknown = re.search(r"\\\w+", made.mathmlstr())
    if unknown:
        raise FormulaError(f"{source}: unknown command {unknown[0]}")
    drawn = made.svgxml()
    _, top, width, height = (float(number) / _EM for number in drawn.attrib["viewBox"].split())
    for name, value in {
        "class": "math", "role": "img", "aria-label": source,
        "width": f"{width:.3f}em", "height": f"{height:.3f}em",
        "style": f"vertical-align: {-(height + top):.3f}em",
    }.items():  # fmt: skip
        drawn.set(name, value)
    return ElementTree.tostring(drawn, encoding="unicode")


def _filled(heading: Heading, kept: list[str]) -> Heading:
    text = re.sub("\ue000(\\d+)\ue001", lambda match: kept[int(match[1])], heading.text)
    return Heading(heading.level, heading.anchor, Markup(text))


@lru_cache(maxsize=1)
def _parser() -> Any:
    """Markdown with tables, without HTML of its own.

    Raises:
        HandoutError: markdown-it-py is missing.
    """
    try:
        from markdown_it import MarkdownIt
    except ImportError as error:
        raise HandoutError(f"markdown-it-py is missing; {_HINT}") from error
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.add_render_rule("image", _image)
    parser.add_render_rule("fence", _fence)
    parser.add_render_rule("table_open", lambda *_: '<div class="table"><table>\n')
    parser.add_render_rule("table_close", lambda *_: "</table></div>\n")
    return parser


def _image(renderer: Any, tokens: Sequence[Any], index: int, options: Any, env: Any) -> str:
    """A picture drawn by code, with its caption."""
    token = tokens[index]
    kind, _, name = token.attrs["src"].partition(":")
    if kind != "picture" or name not in PICTURES:
        raise HandoutError(
            f"{env['name']}: no picture {token.attrs['src']!r}; "
            f"hint: picture: and one of {', '.join(PICTURES)}"
        )
    if not token.content:
        raise HandoutError(f"{env['name']}: picture {name} has no words for those who can't see it")
    caption = html.escape(token.attrs.get("title", ""))
    drawn = env["style"](PICTURES[name]().svg(token.content))
    return f'<span class="picture">{drawn}</span><span class="caption">{caption}</span>'


def _fence(renderer: Any, tokens: Sequence[Any], index: int, options: Any, env: Any) -> str:
    """A block of code; what stands after the language is for the tests alone."""
    token = tokens[index]
    language = (token.info.split() or ["text"])[0]
    code = _coloured(token.content, language)
    return f'<pre class="{html.escape(language)}"><code>{code}</code></pre>\n'


def _coloured(code: str, language: str) -> str:
    """Code as HTML, with the classes of pygments if it knows the language."""
    try:
        from pygments import highlight
        from pygments.formatters import HtmlFormatter
        from pygments.lexers import get_lexer_by_name
        from pygments.util import ClassNotFound
    except ImportError as error:
        raise HandoutError(f"pygments is missing; {_HINT}") from error
    try:
        lexer = get_lexer_by_name(language, stripnl=False)
    except ClassNotFound:
        return html.escape(code)
    return str(highlight(code, lexer, HtmlFormatter(nowrap=True)))


def code_rules(style: str) -> str:
    """The CSS rules of one of pygments' styles, for blocks of code."""
    from pygments.formatters import HtmlFormatter

    lines = HtmlFormatter(style=style).get_token_style_defs("pre")
    return "\n".join(line for line in lines if "{" in line)


def _number_headings(name: str, tokens: Sequence[Any]) -> list[Heading]:
    """Gives headings an anchor; returns those of levels 1 and 2."""
    found: list[Heading] = []
    seen: set[str] = set()
    for index, token in enumerate(tokens):
        if token.type != "heading_open":
            continue
        inline = tokens[index + 1]
        level, anchor = int(token.tag[1]), _anchor(name, inline.content, seen)
        token.attrSet("id", anchor)
        if level <= 2:
            text = _parser().renderer.renderInline(inline.children, _parser().options, {})
            found.append(Heading(level, anchor, Markup(text)))
    if [heading.level for heading in found].count(1) != 1 or found[0].level != 1:
        raise HandoutError(f"{name}: hint: a chapter opens with its one heading, `# Title`")
    return found


def _anchor(name: str, text: str, seen: set[str]) -> str:
    """The heading's words as an anchor, which is unique in its document."""
    chapter = re.sub(r"^\d\d-|\.md\.j2$", "", name)
    words = "-".join(re.findall(r"[a-z0-9]+", text.lower())) or "section"
    anchor, number = f"{chapter}-{words}", 1
    while anchor in seen:
        number += 1
        anchor = f"{chapter}-{words}-{number}"
    seen.add(anchor)
    return anchor
