"""Formulas, pictures and pages of the handout."""

import re
import shutil
import subprocess
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from grader import cli, handout
from grader.build import KIT
from grader.chapters import HandoutError, render_markdown, to_chapter
from grader.drawing import Drawing, layered, with_style
from grader.formula import FormulaError, formula_html
from grader.graphs import GraphError, read_graph
from grader.handout import (
    CHAPTERS,
    Document,
    chapter_files,
    guide_document,
    student_document,
    to_html,
    to_pdf,
)  # fmt: skip
from grader.layouts import BLOCK, COLUMNS, ROWS, SIDE, SUMMED, THREAD, reduction_steps
from grader.pictures import PICTURES, read_peak, read_points, reference_graph, size_text
from grader.rubric import load_rubric

RUBRIC = load_rubric("default")


def words(markup):
    """The text of some HTML."""
    return re.sub(r"\s+", "", re.sub(r"<[^>]*>", "", markup))


# --- formulas -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("x_{ij}", "xij"),
        (r"\frac{a}{b}", "a/b"),
        (r"\bar{v} = W^T", "v=WT"),
        (r"\sum_{k=1}^{K} a_k", "∑k=1Kak"),
        (r"\text{if } x \ge 0", "ifx≥0"),
        ("a < b", "a&lt;b"),
        ("-x", "−x"),
        (r"i \bmod 32", "imod32"),
    ],
)
def test_a_formula_says_what_it_says(source, text):
    assert words(formula_html(source)) == text


def test_letters_are_italic_and_digits_are_not():
    assert formula_html("x2") == '<span class="math" role="math"><i>x</i>2</span>'


def test_a_displayed_fraction_stands_on_two_lines():
    shown = formula_html(r"\frac{1}{N}", display=True)
    assert '<span class="top">1</span><span class="bottom"><i>N</i></span>' in shown


def test_limits_of_a_displayed_sum_stand_below_and_above():
    shown = formula_html(r"\sum_{k=1}^{K}", display=True)
    assert shown.index('class="above"') < shown.index("∑") < shown.index('class="below"')


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (r"\integral x", "unknown command"),
        ("x_{i", "without a }"),
        ("x}", "without a {"),
        ("x^", "missing"),
        (r"\text x", "takes"),
    ],
)
def test_a_wrong_formula_is_shown_with_what_is_wrong(source, message):
    with pytest.raises(FormulaError, match=re.escape(message)) as caught:
        formula_html(source)
    assert source in str(caught.value)


def test_a_formula_cannot_bring_html():
    assert "<script" not in formula_html(r"\text{<script>} <b> x")


# --- pictures -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(PICTURES))
def test_a_picture_is_xml_with_words_inside_of_its_frame(name):
    drawn = PICTURES[name]()
    root = ElementTree.fromstring(with_style(drawn.svg('a "text" & more')))
    assert root.get("aria-label") == 'a "text" & more'
    assert root.get("role") == "img"
    assert drawn.width <= 642  # what fits between the margins of A4
    texts = [e for e in root.iter() if e.tag.endswith("text")]
    assert len(texts) > 5
    for text in texts:
        reach = 6.6 * len(text.text)  # a letter of 11 pixels is about as wide
        x, anchor = float(text.get("x")), text.get("text-anchor")
        left = x - {"start": 0, "middle": reach / 2, "end": reach}[anchor]
        assert left > -12 and left + reach < drawn.width + 12, (name, text.text)
        assert 0 < float(text.get("y")) <= drawn.height, (name, text.text)


def test_every_picture_is_used_and_every_class_has_a_rule():
    texts = "".join(render_markdown(path, RUBRIC) for path, _ in chapter_files(CHAPTERS))
    for name, draw in PICTURES.items():
        assert f"(picture:{name} " in texts
        svg = draw().svg("x")
        for kind in set(" ".join(re.findall(r'class="([^"]+)"', svg)).split()):
            assert f".{kind} " in with_style(svg), kind


def test_the_same_pictures_come_out_again():
    first = {name: draw().svg("x") for name, draw in PICTURES.items()}
    reference_graph.cache_clear()
    assert {name: draw().svg("x") for name, draw in PICTURES.items()} == first


def test_a_node_stands_below_its_inputs_and_none_on_another():
    inputs = {0: (), 1: (), 2: (0, 1), 3: (2,), 4: (3, 0), 5: (4, 2), 6: (1,)}
    placed = layered(inputs, 100, 20)
    for node, read in inputs.items():
        assert all(placed.places[i][1] < placed.places[node][1] for i in read)
    for a in inputs:
        for b in inputs:
            if a < b and placed.places[a][1] == placed.places[b][1]:
                assert abs(placed.places[a][0] - placed.places[b][0]) >= 99.9
    for (source, node), bends in placed.bends.items():
        layers = [placed.places[source][1], *(y for _, y in bends), placed.places[node][1]]
        assert layers == list(range(layers[0], layers[-1] + 1))


def test_the_plan_that_is_drawn_never_shares_a_live_buffer():
    graph = read_graph()
    assert len(graph.evaluated) == 3
    for a in graph.computed:
        for b in graph.computed:
            if a.number < b.number and a.buffer == b.buffer:
                assert a.last <= b.number, (a, b)
                assert a.number not in graph.evaluated
    for step in graph.computed:
        assert step.size <= graph.buffers[step.buffer]
        assert all(graph.steps[i].last >= step.number for i in step.inputs)
    assert sum(graph.buffers) < sum(step.size for step in graph.computed)


def test_a_reference_that_fails_is_told_with_its_last_line(tmp_path):
    (tmp_path / "python/dlsys").mkdir(parents=True)
    (tmp_path / "python/dlsys/__init__.py").write_text("raise ValueError('broken on purpose')")
    with pytest.raises(GraphError, match="broken on purpose"):
        read_graph(tmp_path)


def test_the_examples_in_pictures_are_computed():
    assert reduction_steps()[-1][0] == sum(SUMMED)
    svg = PICTURES["grid"]().svg("x")
    address = (BLOCK[0] * SIDE + THREAD[0]) * COLUMNS + BLOCK[1] * SIDE + THREAD[1]
    assert f" = {address}<" in svg
    threads = -(-ROWS // SIDE) * -(-COLUMNS // SIDE) * SIDE**2
    assert svg.count(">–<") == threads - ROWS * COLUMNS


def test_measured_kernels_lie_below_the_roof():
    peak, points = read_peak(), read_points()
    assert len(points) == 8
    for point in points:
        assert 0 < point.flops < min(peak.flops, point.intensity * peak.bytes_per_second)
    add = next(p for p in points if p.name == "matrix_elementwise_add")
    assert add.intensity == pytest.approx(1 / 12)
    product = next(p for p in points if p.name == "matrix_multiply")
    assert product.intensity == pytest.approx(2 * 4096 / 12)


@pytest.mark.parametrize(
    ("count", "text"), [(4, "4 B"), (40_000, "40 kB"), (1_024_000, "1.02 MB"), (2e9, "2 GB")]
)
def test_sizes_in_words(count, text):
    assert size_text(count) == text


def test_words_in_a_picture_are_escaped():
    drawing = Drawing(10, 10)
    drawing.text(1, 1, "<script>")
    assert "<script>" not in drawing.svg("x")


# --- chapters -----------------------------------------------------------------------------------


def chapter(markdown):
    return to_chapter("10-x.md.j2", None, markdown, str)


def test_a_dollar_in_code_is_no_formula():
    body = chapter("# T\n\n`$HOME` and $x$\n\n```sh run\necho $A $B\n```\n").body
    assert "<code>$HOME</code>" in body
    assert "echo $A $B" in body
    assert body.count('class="math"') == 1


def test_a_formula_may_stand_in_a_heading_and_in_a_table():
    made = chapter("# T\n\n## About $x_i$\n\n| a | b |\n|---|---|\n| $|x|$ | 2 |\n")
    assert "<i>x</i><sub><i>i</i></sub>" in made.headings[1].text
    assert made.body.count("<td>") == 2


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
    return to_html(student_document(RUBRIC), RUBRIC)


def test_the_page_needs_nothing_and_its_contents_lead_somewhere(page):
    read = Page(page)
    assert {"script", "link", "img", "iframe", "object"}.isdisjoint(read.tags)
    assert read.sources == []
    assert len(read.ids) == len(set(read.ids))
    inner = [link[1:] for link in read.links if link.startswith("#")]
    assert len(inner) > 30 and set(inner) <= set(read.ids)
    assert all(link.startswith(("#", "https://")) for link in read.links)
    assert "default-src 'none'" in page
    assert "prefers-color-scheme: dark" in page
    assert read.tags.count("svg") == len(PICTURES)
    assert "picture:" not in page and "\ue000" not in page and "{{" not in page


def test_a_part_alone_has_no_chapter_of_another():
    text = to_html(student_document(RUBRIC, frozenset({2})), RUBRIC)
    assert "Task 2.10" in text
    assert "Task 1.3" not in text
    assert "Part 1" not in re.sub("(?s)<svg.*?</svg>", "", text).split("How to read a report")[0]


def test_the_students_page_has_nothing_of_the_guide(page):
    guide = to_html(guide_document(RUBRIC), RUBRIC)
    titles = re.findall(r"<h1[^>]*>(.*?)</h1>", guide)
    assert titles and all(title not in page for title in titles)
    assert student_document(RUBRIC).stem != guide_document(RUBRIC).stem


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
        handout._no_request("http://example.org/x.png")


# --- the command --------------------------------------------------------------------------------


def run(*arguments):
    return cli.main(["handout", *map(str, arguments)])


def test_the_command_writes_the_page_alone(tmp_path, capsys):
    assert run("--html", "--part", 1, "--output", tmp_path / "out") == 0
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["handout-part-1.html"]
    assert "handout-part-1.html" in capsys.readouterr().out


def test_an_assignment_of_ones_own_has_chapters_of_its_own(tmp_path):
    folder, rubric = tmp_path / "chapters", tmp_path / "rubric.toml"
    folder.mkdir()
    (folder / "10-part-1-scale.md.j2").write_text("# Scale\n\n{{ points(1) | number }} points")
    rubric.write_text(
        'title = "Mine"\ndescription = ""\nfiles = ["a.cu"]\nsizes = "thorough"\n'
        '[parts]\n1 = "one"\n[tasks]\n"1.1" = "scale"\n'
        '[[check]]\nname = "scale"\ntask = "1.1"\npoints = 7\n'
    )
    made = tmp_path / "out"
    assert run("--html", "--chapters", folder, "--profile", rubric, "--output", made) == 0
    text = (made / "handout.html").read_text()
    assert "<title>Mine</title>" in text and "7 points" in text and "autodiff" not in text


def test_the_guide_is_a_file_of_its_own(tmp_path):
    assert run("--html", "--guide", "--output", tmp_path) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["instructors-guide.html"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--part", "9"], "there is no part 9"),
        (["--guide", "--part", "1"], "the guide is one"),
        (["--chapters", "no-such-folder"], "is no folder"),
        (["--output", str(KIT / "README.md")], "is no folder"),
        (["--profile", "nothing"], "no rubric"),
    ],
)
def test_a_wrong_option_is_usage(arguments, message, capsys):
    assert run(*arguments) == 2
    assert message in capsys.readouterr().err


def test_a_handout_that_can_not_be_made_is_the_machines_fault(tmp_path, monkeypatch, capsys):
    def fail(*arguments):
        raise HandoutError("weasyprint is missing; hint: x")

    monkeypatch.setattr("grader.commands.handout.to_pdf", fail)
    assert run("--pdf", "--output", tmp_path / "out") == 3
    assert "hint: x" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
