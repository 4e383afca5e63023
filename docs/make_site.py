"""Builds the site: chapters, guide, findings, catalogues and the package's API, by Sphinx.

    python docs/make_site.py [--output build/docs] [--links]

What is generated goes to OUTPUT/source, with the hand-written pages of this folder; the site to
OUTPUT/html. Warnings are errors. --links asks the network instead whether outer links are alive.
"""

import argparse
import difflib
import html
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

from grader.course.course import kit_course, load_course, rubric_of
from grader.handout.chapters import FORMULA, formula_svg, render_markdown
from grader.handout.documents import DARK, chapter_files, guide_document, student_document
from grader.handout.pictures import PICTURES
from grader.handout.svg import PAPER, rules

KIT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(KIT / "tests/suite"), str(KIT / "emulator"), str(KIT / "tools")]

import house_sizes  # noqa: E402
import import_graph  # noqa: E402
import manifest  # noqa: E402
from findings.kinds import WORDS  # noqa: E402

# Beside what is written by hand, ops.md, which tools/ops_table.py writes, and passes.md with its
# pictures, which tools/pass_pictures.py does.
HAND_WRITTEN = ("conf.py", "index.md", "api.md", "ops.md", "passes.md", "findings/index.md")
#: Figures that tools measured.
MEASURED = (
    "speed.md", "gpu_speed.md", "step_speed.md", "step_memory.md", "graph_costs.md",
    "gemm_ladder.md", "convolution_methods.md", "ladders.md", "train_speed.md",
    "gpu_train_speed.md", "training.md",
)  # fmt: skip
ROOMS = "rooms.md"  # hand-written, but for `ROOMS_PICTURE`, `ROOMS_FIGURES` and `ROOMS_SIZES`
GENERATED_ELSEWHERE = ("suite", "catalogue", "mistakes", "reports", "results")
_PICTURE = re.compile(r'!\[(?P<words>[^\]]+)\]\(picture:(?P<name>\w+) "(?P<caption>[^"]*)"\)')


# --- chapters -----------------------------------------------------------------------------------


def to_myst(markdown):
    """A chapter as Sphinx reads it: formulas and pictures are SVG, blocks have a language alone."""
    markdown = FORMULA.sub(formula, markdown)
    markdown = _PICTURE.sub(picture, markdown)
    return re.sub(r"^(```\w+) .*$", r"\1", markdown, flags=re.M)


def formula(match):
    """A formula as SVG; code stays."""
    if match["code"] is not None:
        return match[0]
    display = match["display"] is not None
    svg = formula_svg(match["display"] or match["inline"], display).replace("|", "&#124;")
    return f'<div class="formula">{svg}</div>' if display else svg


def picture(match):
    """A picture drawn by code."""
    drawn = PICTURES[match["name"]]().svg(match["words"])
    caption = f"<figcaption>{html.escape(match['caption'])}</figcaption>"
    return f'<figure class="picture">\n{drawn}\n{caption}\n</figure>\n'


def write_chapters(folder, document, rubric):
    """A page for each chapter of a document."""
    for path, _ in chapter_files(document.folder, document.parts):
        text = render_markdown(path, rubric, document.parts, document.checks)
        write(folder / path.name.removesuffix(".j2"), to_myst(text))


# --- the house ----------------------------------------------------------------------------------


def rooms_page():
    """The page about the grader's rooms, with the picture of their imports today."""
    graph = import_graph.import_graph("grader")
    text = (KIT / "docs" / ROOMS).read_text().replace("ROOMS_FIGURES", graph.summary())
    text = text.replace("ROOMS_SIZES", house_sizes.table())
    return text.replace("ROOMS_PICTURE", f'<figure class="picture">\n{graph.svg()}\n</figure>')


# --- findings -----------------------------------------------------------------------------------


def slug(kind):
    """The name of a kind's page."""
    return "-".join(re.findall(r"[a-z0-9]+", kind.lower()))


def twin(source, fixed):
    """The source of a bug, or of its correct twin: what the compiler sees of it."""
    lines, taken = [], [True]
    for line in source.splitlines():
        condition = re.fullmatch(r"#if(n?)def FIXED", line.strip())
        if condition:
            taken.append(fixed != bool(condition[1]))
        elif line.strip() == "#else" and len(taken) > 1:
            taken[-1] = not taken[-1]
        elif line.strip() == "#endif" and len(taken) > 1:
            taken.pop()
        elif all(taken):
            lines.append(line)
    return [
        line for line in lines if not re.match(r"// (bug|finds|line|sanitizer|tolerates): ", line)
    ]


def verdicts(name):
    """What each checker says of a bug, as handout/suite.md has it."""
    header, row = None, None
    for line in (KIT / "handout/suite.md").read_text().splitlines():
        if line.startswith("| bug |"):
            header = line
        if f"(`{name}`) |" in line:
            row = line
    return [cells.strip(" |").split(" | ")[1:] for cells in (header, row)] if row else [[], []]


def example(program):
    """A program with the bug, and the fix; the report names a line with `// <- bug`."""
    source = program.path.read_text()
    wrong, right = twin(source, False), twin(source, True)
    fix = [line for line in difflib.unified_diff(wrong, right, lineterm="", n=2)][2:]
    heads, values = verdicts(program.name)
    told = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}", f"| {' | '.join(values)} |"]
    parts = [f"### {program.path.stem}", f"The bug: {program.says}.", fenced("cuda", wrong)]
    parts += ["The fix:", fenced("diff", fix)]
    if heads:
        parts += ["Who finds it ({doc}`/suite` explains the words):", "\n".join(told)]
    return parts


def fenced(language, lines):
    """A block of code."""
    return "\n".join([f"```{language}", *lines, "```"])


def finding_page(kind, programs):
    """The page of a kind of finding: the words, and a program with the bug and with the fix."""
    words = WORDS[kind]
    parts = [f"# {words.title}", f"Kind: `{kind}`.", "## What the report says"]
    parts += [words.cause, f"> hint: {words.hint}"]
    shown = [program for program in programs if kind in program.finds]
    if shown:
        parts += ["## Programs that have it", *(p for program in shown for p in example(program))]
    else:
        parts.append("No program of `tests/suite/` has it: none there may run for ever.")
    return "\n\n".join(parts) + "\n"


def write_findings(folder):
    """A page for each kind."""
    programs = [program for program in manifest.programs() if not program.correct]
    for kind in WORDS:
        write(folder / f"{slug(kind)}.md", finding_page(kind, programs))


# --- links -------------------------------------------------------------------------------------


class Page(HTMLParser):
    """What a page links to, and the places in it that can be linked to."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors = [], {""}
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        """Notes the attributes."""
        for name, value in attrs:
            if name in ("href", "src"):
                self.links.append(value)
            elif name == "id":
                self.anchors.add(value)


def dead_links(folder):
    """Links inside of the site that lead nowhere, with the pages they stand in."""
    pages = {path.resolve(): Page(path) for path in folder.rglob("*.html")}
    for path, page in sorted(pages.items()):
        for link in page.links:
            file, _, anchor = link.partition("#")
            if re.match(r"[a-z]+:", link):
                continue
            target = (path.parent / unquote(file.partition("?")[0])).resolve() if file else path
            known = pages[target].anchors if target in pages else {anchor}
            if not target.is_file() or unquote(anchor) not in known:
                yield f"{path.relative_to(folder.resolve())}: {link} leads nowhere"


# --- the site -----------------------------------------------------------------------------------


def style():
    """Rules for pictures and formulas, in light and in dark."""
    colours = {name: f"var(--kit-{name})" for name in PAPER}
    light, dark = (
        " ".join(f"--kit-{name}: {value};" for name, value in theme.items())
        for theme in (PAPER, DARK)
    )
    return f"""body {{ {light} }}
body[data-theme="dark"] {{ {dark} }}
@media (prefers-color-scheme: dark) {{ body:not([data-theme="light"]) {{ {dark} }} }}
{rules(colours, ".picture ")}
.picture {{ margin: 1rem 0; overflow-x: auto; }}
.picture svg {{ display: block; max-width: 100%; min-width: 32rem; height: auto; }}
.formula {{ overflow-x: auto; padding: .2rem 0; text-align: center; }}
pre {{ white-space: pre-wrap; overflow-wrap: anywhere; }}
@media print {{ .picture svg {{ min-width: 0; }} }}
"""


def write(path, text):
    """Writes a page, with its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def write_sources(folder):
    """All that Sphinx reads."""
    shutil.rmtree(folder, ignore_errors=True)
    for name in (*HAND_WRITTEN, *MEASURED):
        write(folder / name, (KIT / "docs" / name).read_text())
    for pictures in ("passes", "training"):
        shutil.copytree(KIT / "docs" / pictures, folder / pictures)
    course = kit_course()
    rubric = rubric_of(course)
    later = [(name, load_course(KIT / f"{name}.toml")) for name in ("steps", "nets")]
    for name, each in (("handout", course), *later):
        write_chapters(folder / name, student_document(each, rubric_of(each)), rubric_of(each))
    write_chapters(folder / "guide", guide_document(course), rubric)
    write_findings(folder / "findings")
    write(folder / ROOMS, rooms_page())
    for name in GENERATED_ELSEWHERE:
        write(folder / f"{name}.md", (KIT / f"handout/{name}.md").read_text())
    write(folder / "_static/kit.css", style())


def main():
    """What the command line asks for; returns Sphinx's exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=KIT / "build/docs", metavar="FOLDER")
    parser.add_argument("--links", action="store_true", help="check links to the outside")
    options = parser.parse_args()
    source = options.output / "source"
    write_sources(source)
    builder = "linkcheck" if options.links else "html"
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-E", "-j", "auto",
               "-d", str(options.output / "doctrees"), "-b", builder,
               str(source), str(options.output / builder)]  # fmt: skip
    code = subprocess.run(command, env={**os.environ, "KIT": str(KIT)}).returncode
    if code or options.links:
        return code
    dead = list(dead_links(options.output / "html"))
    print("\n".join(dead) if dead else options.output / "html/index.html")
    return 1 if dead else 0


if __name__ == "__main__":
    sys.exit(main())
