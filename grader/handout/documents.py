"""Makes the students' handout and the instructor's guide, as HTML and as PDF.

Their chapters are the files of handout/chapters and handout/guide: see grader/handout/chapters.py.
They are separate documents, so that the students' one contains nothing of the other.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from markupsafe import Markup

from grader import __version__
from grader.base.files import write_whole
from grader.building.tree import KIT
from grader.checks.registry import CHECKS, Check, checks_of
from grader.course.course import Course
from grader.course.rubric import Rubric
from grader.handout.chapters import HandoutError, code_rules, render_markdown, to_chapter
from grader.handout.svg import PAPER, rules, with_style
from grader.release.front_matter import heading, moment
from grader.report.html import templates

GUIDE = KIT / "handout" / "guide"
_NAME = re.compile(r"\d\d-(?:part-(?P<part>\d+)-)?[a-z0-9-]+\.md\.j2")
#: Colours on a dark screen; PAPER has those of a light one.
DARK = {
    "ink": "#e6eaef", "soft": "#a9b4bf", "line": "#46505c", "card": "#181d24", "edge": "#8894a1",
    "blue": "#1f4a78", "amber": "#6b4d12", "green": "#1d5a30", "violet": "#4b3a78",
    "grey": "#333b45", "mark": "#ff8a80",
}  # fmt: skip


@dataclass(frozen=True)
class Document:
    """A document to be written.

    Attributes:
        folder: of the chapters.
        stem: of the files' names.
        title, subtitle: of the document.
        course: name of the course, for the window's title.
        lines: below the title: the course, and the due dates.
        parts: numbers of the parts whose chapters are in it; None: all.
        checks: name in the rubric -> check, for its sentence.
    """

    folder: Path
    stem: str
    title: str
    subtitle: str
    course: str = ""
    lines: tuple[str, ...] = ()
    parts: frozenset[int] | None = None
    checks: Mapping[str, Check] = field(default_factory=lambda: CHECKS)


def student_document(
    course: Course,
    rubric: Rubric,
    parts: frozenset[int] | None = None,
    folder: Path | None = None,
) -> Document:
    """The students' handout, for `parts` or for those that the course releases.

    Args:
        course: gives names, dates and chapters.
        rubric: gives the points.
        parts: numbers of parts; they are also in the files' names then.
        folder: other chapters than the course's.

    Raises:
        HandoutError: the course has no chapters.
        CourseError: a file with its checks can't be loaded.
    """
    folder = folder or course.handout
    if folder is None:
        raise HandoutError(
            f'{course.path} names no handout; hint: handout = "handout" in [assignment], '
            "a folder with chapters"
        )
    shown = sorted(parts or set(course.released(rubric)) & set(rubric.parts))
    words = ", ".join(f"part {number}: {rubric.parts[number]}" for number in shown)
    stem = "handout" if parts is None else f"handout-part-{'-'.join(map(str, shown))}"
    subtitle = f"Handout. {words[:1].upper()}{words[1:]}."
    lines = (heading(course), *_dates(course, shown))
    checks = checks_of(course)
    return Document(
        folder, stem, course.title, subtitle, course.name, lines, frozenset(shown), checks
    )


def _dates(course: Course, parts: list[int]) -> list[str]:
    """The due date of each part; one line if all are due at once."""
    due = {part: moment(course.due_of(part)) for part in parts}
    if len(set(due.values())) == 1 and due[parts[0]]:
        return [f"Due: {due[parts[0]]}."]
    return [f"Part {part} is due: {when}." for part, when in due.items() if when]


def guide_document(course: Course) -> Document:
    """The instructor's guide. It is not for students, but holds no secret."""
    title = "Instructor's guide"
    return Document(GUIDE, "instructors-guide", title, f"For: {course.title}.", course.name)


def chapter_files(
    folder: Path, parts: frozenset[int] | None = None
) -> list[tuple[Path, int | None]]:
    """The chapters in order, each with the part that it is about, or None; only those of `parts`.

    Raises:
        HandoutError: there is none, or a name is not NN-name.md.j2 or NN-part-N-name.md.j2.
    """
    found = []
    for path in sorted(folder.glob("*.j2")):
        match = _NAME.fullmatch(path.name)
        if match is None:
            raise HandoutError(f"{path}: hint: name it 10-name.md.j2 or 20-part-1-name.md.j2")
        part = int(match["part"]) if match["part"] else None
        if parts is None or part is None or part in parts:
            found.append((path, part))
    if not found:
        raise HandoutError(f"{folder} has no chapters; hint: they are named 10-name.md.j2")
    return found


def to_html(document: Document, rubric: Rubric, paper: bool = False) -> str:
    """The whole document as one page that needs no other file; `paper` makes it for weasyprint.

    Raises:
        HandoutError: see render_markdown and to_chapter.
    """
    style = with_style if paper else _as_it_is
    chapters = [
        to_chapter(path.name, part, _markdown(path, rubric, document), style)
        for path, part in chapter_files(document.folder, document.parts)
    ]
    page = templates()
    script = Markup(page.get_template("handout.js.j2").render())
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return page.get_template("handout.html.j2").render(
        head=": ".join(dict.fromkeys(filter(None, (document.course, document.title)))),
        title=document.title,
        subtitle=document.subtitle,
        lines=document.lines,
        version=__version__,
        chapters=chapters,
        paper=paper,
        light=PAPER,
        dark=DARK,
        drawn=Markup(rules({name: f"var(--{name})" for name in PAPER}, ".picture ")),
        code=Markup(code_rules("default")),
        dark_code=Markup(code_rules("github-dark")),
        script=script,
        digest=digest,
    )


def _markdown(path: Path, rubric: Rubric, document: Document) -> str:
    return render_markdown(path, rubric, document.parts, document.checks)


def _as_it_is(svg: str) -> str:
    return svg


def to_pdf(document: Document, rubric: Rubric) -> bytes:
    """The document as PDF.

    Raises:
        HandoutError: weasyprint or Pango is missing; or see to_html.
    """
    try:
        import weasyprint  # type: ignore[import-untyped]
    except ImportError as error:
        hint = "hint: python3 -m pip install 'dlsys-kit[handout]'"
        raise HandoutError(f"the PDF needs weasyprint; {hint}") from error
    except OSError as error:
        hint = "hint: apt-get install libpango-1.0-0 libpangoft2-1.0-0"
        raise HandoutError(f"weasyprint does not find Pango: {error}; {hint}") from error
    page = weasyprint.HTML(string=to_html(document, rubric, paper=True), url_fetcher=_no_request)
    return bytes(page.write_pdf())


def write_document(
    document: Document, rubric: Rubric, folder: Path, html: bool = True, pdf: bool = True
) -> list[Path]:
    """Writes the document to a folder, each file whole; returns the files. Files written before an
    error stay.

    Raises:
        HandoutError: see to_html and to_pdf.
    """
    made: list[Path] = []
    if html:
        made.append(folder / f"{document.stem}.html")
        write_whole(made[-1], to_html(document, rubric))
    if pdf:
        made.append(folder / f"{document.stem}.pdf")
        write_whole(made[-1], to_pdf(document, rubric))
    return made


def _no_request(url: str, *arguments: Any, **options: Any) -> Any:
    """Refuses every request: a document holds all that it is made of."""
    raise ValueError(f"the handout asks for {url}; hint: draw it by code")
