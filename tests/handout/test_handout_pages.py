"""Chapters and pages of the handout, as HTML and PDF, and the command."""

import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

from browser import act, needs_chromium
from grader.building.tree import KIT
from grader.cli import main
from grader.course.course import kit_course, load_course, rubric_of
from grader.course.rubric import load_rubric
from grader.handout import documents
from grader.handout.chapters import HandoutError, render_markdown, to_chapter
from grader.handout.documents import (  # fmt: skip
    Document,
    chapter_files,
    guide_document,
    student_document,
    to_html,
    to_pdf,
)
from grader.handout.pictures import PICTURES
from grader.release.front_matter import PLACE

RUBRIC = load_rubric("default")
KIT_COURSE = kit_course()


def words(markup):
    """The text of some HTML."""
    return re.sub(r"\s+", "", re.sub(r"<[^>]*>", "", markup))


# --- chapters -----------------------------------------------------------------------------------


def chapter(markdown):
    return to_chapter("10-x.md.j2", None, markdown, str)


def test_a_dollar_in_code_is_no_formula():
    body = chapter("# T\n\n`$HOME` and $x$\n\n```sh run\necho $A $B\n```\n").body
    assert "<code>$HOME</code>" in body
    assert "echo$A$B" in words(body)
    assert body.count('class="math"') == 1


def test_code_is_coloured_and_its_text_stays():
    body = chapter("# T\n\n```cuda\n__global__ void f() { int i = 1; }\n```\n").body
    assert '<pre class="cuda"><code><span class="' in body
    assert words(body).endswith("__global__voidf(){inti=1;}")
    assert "<span" not in chapter("# T\n\n```unheard\nint i;\n```\n").body


def test_a_formula_may_stand_in_a_heading_and_in_a_table():
    made = chapter("# T\n\n## About $x_i$\n\n| a | b |\n|---|---|\n| $|x|$ | 2 |\n")
    assert 'aria-label="x_i"' in made.headings[1].text
    assert made.body.count("<td>") == 2


def test_no_line_begins_with_what_stands_behind_a_formula():
    assert re.search(r'<span class="tied"><svg.*?</svg>\),</span>', chapter("# T\n\n($x$), y").body)


def test_html_in_markdown_is_text():
    assert "<script>" not in chapter("# T\n\n<script>alert(1)</script>\n").body


def test_anchors_are_unique():
    made = chapter("# T\n\n## Test it\n\n## Test it\n")
    assert len({heading.anchor for heading in made.headings}) == 3


@pytest.mark.parametrize(
    ("markdown", "message"),
    [
        ("# T\n\n![x](picture:nothing)", "hint: picture: and one of"),
        ("# T\n\n![](picture:graph)", "no words"),
        ("# T\n\n![x](http://example.org/x.png)", "no picture"),
        ("no heading", "opens with its one heading"),
        ("# One\n\n# Two", "opens with its one heading"),
        ("# T\n\n$\\nothing$", "unknown command"),
    ],
)
def test_a_wrong_chapter_is_an_error_that_names_it(markdown, message):
    with pytest.raises(HandoutError, match=re.escape(message)) as caught:
        chapter(markdown)
    assert "10-x.md.j2" in str(caught.value)


def test_chapters_are_named_by_number_and_part(tmp_path):
    with pytest.raises(HandoutError, match="no chapters"):
        chapter_files(tmp_path)
    (tmp_path / "20-part-1-a.md.j2").write_text("# A\n")
    (tmp_path / "30-part-2-b.md.j2").write_text("# B\n")
    (tmp_path / "10-c.md.j2").write_text("# C\n")
    assert [part for _, part in chapter_files(tmp_path)] == [None, 1, 2]
    assert [part for _, part in chapter_files(tmp_path, frozenset({2}))] == [None, 2]
    (tmp_path / "intro.md.j2").write_text("# A\n")
    with pytest.raises(HandoutError, match="hint: name it"):
        chapter_files(tmp_path)


def test_a_template_that_asks_for_what_is_not_there_is_an_error(tmp_path):
    path = tmp_path / "10-a.md.j2"
    path.write_text("# A\n\n{{ nothing }}\n")
    with pytest.raises(HandoutError, match=r"10-a.md.j2.*nothing"):
        render_markdown(path, RUBRIC)


# --- documents ----------------------------------------------------------------------------------


class Page(HTMLParser):
    """Tags and attributes of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.ids, self.links, self.sources = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            if name == "href":
                self.links.append(value)
            if name in ("src", "srcset", "action"):
                self.sources.append(value)


@pytest.fixture(scope="module")
def page():
    return to_html(student_document(KIT_COURSE, RUBRIC), RUBRIC)


def test_the_page_needs_nothing_and_its_contents_lead_somewhere(page):
    read = Page(page)
    assert {"link", "img", "iframe", "object"}.isdisjoint(read.tags)
    assert read.tags.count("script") == 1
    assert read.sources == []
    assert len(read.ids) == len(set(read.ids))
    inner = [link[1:] for link in read.links if link.startswith("#")]
    assert len(inner) > 30 and set(inner) <= set(read.ids)
    assert all(link.startswith(("#", "https://")) for link in read.links)
    assert "default-src 'none'" in page
    assert "prefers-color-scheme: dark" in page
    later = [load_course(KIT_COURSE.folder / name) for name in ("steps.toml", "nets.toml")]
    pages = [page, *(to_html(student_document(c, rubric_of(c)), rubric_of(c)) for c in later)]
    assert sum(p.count('<span class="picture"><svg') for p in pages) == len(PICTURES)
    assert "picture:" not in page and "\ue000" not in page and "{{" not in page


# What is wider than the window, though it does not scroll by itself; then what is cut off.
_WIDE = """
const all = [...page.querySelectorAll("main *")];
const auto = e => view.getComputedStyle(e).overflowX === "auto";
const scrolls = e => e && (auto(e) || scrolls(e.parentElement));
const right = page.documentElement.clientWidth + 1;
return {
  wide: all.filter(e => e.getBoundingClientRect().right > right && !scrolls(e))
    .map(e => e.outerHTML.slice(0, 80)),
  code: [...page.querySelectorAll("pre")].filter(e => e.scrollWidth > e.clientWidth).length,
  sideways: page.documentElement.scrollWidth > page.documentElement.clientWidth,
  open: page.getElementById("contents").open,
  buttons: page.querySelectorAll("pre > button").length,
};"""


@needs_chromium
@pytest.mark.parametrize(("width", "folded"), [(400, True), (1400, False)])
def test_nothing_is_cut_off_in_a_narrow_window(page, width, folded, tmp_path):
    seen, said = act(tmp_path, page, _WIDE, width)
    assert said == []
    assert (seen["wide"], seen["sideways"]) == ([], False)
    assert seen["open"] is not folded
    assert seen["buttons"] > 30
    assert seen["code"] == 0


@needs_chromium
def test_a_button_copies_what_was_typed(page, tmp_path):
    steps = """
    const copied = [];
    Object.defineProperty(view.navigator, "clipboard",
      {value: {writeText: text => { copied.push(text); return Promise.resolve(); }}});
    for (const button of page.querySelectorAll("pre.pycon > button")) button.click();
    return {copied};"""
    seen, said = act(tmp_path, page, steps)
    assert said == []
    assert seen["copied"][0].startswith('import sys\nsys.path.insert(0, "python")\n')
    assert not any(">>>" in text for text in seen["copied"])


def test_a_part_alone_has_no_chapter_of_another():
    text = to_html(student_document(KIT_COURSE, RUBRIC, frozenset({2})), RUBRIC)
    assert "Task 2.10" in text
    assert "Task 1.3" not in text
    assert "Part 1" not in re.sub("(?s)<svg.*?</svg>", "", text).split("How to read a report")[0]


def test_the_students_page_has_nothing_of_the_guide(page):
    guide = to_html(guide_document(KIT_COURSE), RUBRIC)
    titles = re.findall(r"<h1[^>]*>(.*?)</h1>", guide)
    assert titles and all(title not in page for title in titles)
    assert student_document(KIT_COURSE, RUBRIC).stem != guide_document(KIT_COURSE).stem


def small(tmp_path, text):
    folder = tmp_path / "chapters"
    folder.mkdir()
    (folder / "10-a.md.j2").write_text(text)
    return Document(folder, "small", "Small", "A test.")


def test_the_pdf_has_pages_contents_and_breaks_long_code(tmp_path):
    pytest.importorskip("weasyprint", exc_type=OSError)
    long = "x" * 300
    text = f"# A\n\n## B\n\n```text\n{long}END\n```\n\n$$ \\frac{{a}}{{b}} $$\n\n"
    text += '![words](picture:tiles "caption")\n'
    data = to_pdf(small(tmp_path, text), RUBRIC)
    assert data.startswith(b"%PDF")
    if shutil.which("pdftotext") is None:
        pytest.skip("no pdftotext here; hint: apt-get install poppler-utils")
    path = tmp_path / "a.pdf"
    path.write_bytes(data)
    shown = subprocess.run(["pdftotext", "-layout", str(path), "-"], capture_output=True, text=True)
    pages = shown.stdout.split("\f")[:-1]
    assert len(pages) == 3  # cover, contents, chapter
    assert re.search(r"B +3", pages[1])
    assert re.sub(r"\s", "", pages[2]).count(long + "END") == 1
    assert "K rows, N columns" in pages[2]


@pytest.mark.parametrize(
    "document", [student_document(KIT_COURSE, RUBRIC), guide_document(KIT_COURSE)],
    ids=lambda document: document.stem,
)  # fmt: skip
def test_the_contents_of_the_pdf_are_right_and_no_heading_is_last_on_a_page(document, tmp_path):
    pytest.importorskip("weasyprint", exc_type=OSError)
    if shutil.which("pdftotext") is None:
        pytest.skip("no pdftotext here; hint: apt-get install poppler-utils")
    path = tmp_path / "a.pdf"
    path.write_bytes(to_pdf(document, RUBRIC))
    shown = subprocess.run(["pdftotext", "-layout", str(path), "-"], capture_output=True, text=True)
    pages = [[words(line) for line in page.splitlines() if line.strip()]
             for page in shown.stdout.split("\f")[:-1]]  # fmt: skip
    contents = re.findall(r"^ *(\S.*?) {2,}(\d+)$", shown.stdout.split("\f")[1], re.M)
    assert len(contents) > 15
    for title, number in contents:
        assert words(title) in pages[int(number) - 1], title
        assert all(page[-2] != words(title) for page in pages[2:] if len(page) > 1), title
    for number, page in enumerate(pages[2:], 3):
        assert page[-1] == str(number)


def test_without_weasyprint_or_pango_the_error_says_what_to_install(tmp_path, monkeypatch):
    document = small(tmp_path, "# A\n")
    for error, hint in ((ImportError("no"), "pip install"), (OSError("no"), "libpango-1.0-0")):

        def fail(name, *arguments, error=error, real=__import__, **options):
            if name == "weasyprint":
                raise error
            return real(name, *arguments, **options)

        monkeypatch.setattr("builtins.__import__", fail)
        with pytest.raises(HandoutError, match=hint):
            to_pdf(document, RUBRIC)
        monkeypatch.undo()


def test_the_document_never_fetches(tmp_path):
    with pytest.raises(ValueError, match="asks for"):
        documents._no_request("http://example.org/x.png")


# --- the command --------------------------------------------------------------------------------


def run(*arguments):
    return main.main(["handout", *map(str, arguments)])


def test_the_command_writes_the_page_alone(tmp_path, capsys):
    assert run("--html", "--part", 1, "--output", tmp_path / "out") == 0
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["handout-part-1.html"]
    assert "handout-part-1.html" in capsys.readouterr().out


OWN_RUBRIC = """title = "Mine"
description = ""
files = ["a.cu"]
sizes = "thorough"
[parts]
1 = "one"
2 = "two"
[tasks]
"1.1" = "scale"
[[check]]
name = "scale"
task = "1.1"
points = 7
"""
OWN_CHECK = """def scale(ctx):
    \"\"\"scale multiplies by a number\"\"\"


CHECKS = {"scale": scale}
"""


def own_course(folder, more='handout = "chapters"', due=""):
    """A course with a check and a chapter of its own, of which part 1 is released."""
    (folder / "chapters").mkdir()
    (folder / "chapters/10-part-1-scale.md.j2").write_text(
        "# Scale\n\n{{ points(1) | number }} points: {{ sentence('scale') }}"
    )
    (folder / "chapters/20-part-2-more.md.j2").write_text("# Not yet\n")
    (folder / "rubric.toml").write_text(OWN_RUBRIC)
    (folder / "mine.py").write_text(OWN_CHECK)
    (folder / "course.toml").write_text(
        '[course]\nname = "GPUs"\nterm = "Spring"\ncontact = "a|b & c"\n[assignment]\n'
        'title = "My <kernels>"\nrubric = "rubric.toml"\nsolution = "solution"\nparts = [1]\n'
        f'skeleton = "assignment"\nchecks = ["mine.py"]\n{more}\n[due]\n{due}\n'
    )
    return folder / "course.toml"


def test_a_course_of_ones_own_has_its_chapters_names_and_checks(tmp_path):
    path = own_course(tmp_path, due="all = 2026-10-26T23:59:00+01:00")
    assert run("--html", "--course", path, "--output", tmp_path / "out") == 0
    text = (tmp_path / "out/handout.html").read_text()
    assert "<title>GPUs: My &lt;kernels&gt;</title>" in text
    assert "7 points: scale multiplies by a number" in text
    assert "GPUs, Spring. Questions: a|b &amp; c" in text
    assert "Due: 2026-10-26 23:59, UTC+01:00." in text
    assert "Not yet" not in text and "autodiff" not in text


def test_dates_of_their_own_stand_with_their_parts(tmp_path):
    course = load_course(own_course(tmp_path, due="2 = 2026-10-05T23:59:00+02:00"))
    rubric = rubric_of(course)
    document = student_document(course, rubric, frozenset(rubric.parts))
    assert document.lines[1:] == ("Part 2 is due: 2026-10-05 23:59, UTC+02:00.",)
    assert student_document(course, rubric).lines[1:] == ()


def test_a_course_without_chapters_is_told_where_to_name_them(tmp_path, capsys):
    assert run("--course", own_course(tmp_path, more="")) == 3
    assert 'hint: handout = "handout" in [assignment]' in capsys.readouterr().err


def test_a_release_makes_the_handout_of_its_parts(tmp_path, capsys):
    pytest.importorskip("weasyprint", exc_type=OSError)
    path, out = own_course(tmp_path), tmp_path / "out"
    (tmp_path / "solution").mkdir()
    (tmp_path / "solution/README.md").write_text(f"# Mine\n\n{PLACE}\n")
    (tmp_path / "solution/a.cu").write_text(
        "// BEGIN SOLUTION 1.1\nint f() { return 42; }\n// END SOLUTION\n"
    )
    assert main.main(["release", "--course", str(path), "--handout", str(out)]) == 0
    assert sorted(file.name for file in out.iterdir()) == ["handout.html", "handout.pdf"]
    assert "handout.pdf" in capsys.readouterr().out
    words = ["release", "--course", str(path), "--handout"]
    assert main.main([*words, str(out), "--check"]) == 2
    assert main.main([*words, str(tmp_path / "mine.py")]) == 2
    path.write_text(path.read_text().replace('handout = "chapters"', ""))
    assert main.main([*words, str(out)]) == 1
    assert "names no handout" in capsys.readouterr().out


def test_the_guide_is_a_file_of_its_own(tmp_path):
    assert run("--html", "--guide", "--output", tmp_path) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["instructors-guide.html"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--part", "9"], "there is no part 9"),
        (["--guide", "--part", "1"], "hint: leave out --guide"),
        (["--chapters", "no-such-folder"], "is not a folder"),
        (["--output", str(KIT / "README.md")], "is not a folder"),
        (["--profile", "nothing"], "no rubric"),
    ],
)
def test_a_wrong_option_is_usage(arguments, message, capsys):
    assert run(*arguments) == 2
    assert message in capsys.readouterr().err


def test_a_handout_that_can_not_be_made_is_the_machines_fault(tmp_path, monkeypatch, capsys):
    def fail(*arguments):
        raise HandoutError("weasyprint is missing; hint: x")

    monkeypatch.setattr("grader.handout.documents.to_pdf", fail)
    assert run("--pdf", "--output", tmp_path / "out") == 3
    assert "hint: x" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
