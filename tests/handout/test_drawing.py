"""Formulas and pictures of the handout."""

import contextlib
import re
from xml.etree import ElementTree

import pytest

from dlsys.backend.streams import assigned
from grader.course.course import kit_course
from grader.course.rubric import load_rubric
from grader.handout.chapters import FormulaError, formula_svg, render_markdown
from grader.handout.documents import chapter_files
from grader.handout.kernel_pictures import (
    BLOCK,
    COLUMNS,
    ROWS,
    SIDE,
    SUMMED,
    THREAD,
    reduction_steps,
)
from grader.handout.memory_graph import GraphError, read_graph
from grader.handout.pictures import PICTURES, read_peak, read_points, reference_graph, size_text
from grader.handout.step_pictures import EVENTS, STREAMS, WAITS
from grader.handout.svg import Drawing, layered, with_style

RUBRIC = load_rubric("default")
CHAPTERS = kit_course().handout


# --- formulas -----------------------------------------------------------------------------------


def numbers(name, drawn):
    """An attribute's numbers, in em."""
    return [
        float(n) for n in re.findall(r"-?\d+\.\d+(?=em)", ElementTree.fromstring(drawn).get(name))
    ]


@pytest.mark.parametrize(
    "source",
    ["x_{ij}", r"\frac{a}{b}", r"\text{if } x \ge 0", "a < b", r"i \bmod 32", "-x", r"\{a\}"],
)
def test_a_formula_is_a_picture_that_says_its_source(source):
    drawn = ElementTree.fromstring(formula_svg(source))
    assert (drawn.get("role"), drawn.get("aria-label")) == ("img", source)
    assert {e.get("fill") for e in drawn.iter() if e.get("fill")} == {"currentColor"}
    assert not any(e.get("id") for e in drawn.iter())


def test_a_formula_stands_on_the_line():
    """What reaches below the line is let down by as much."""
    (x,), (y,) = numbers("style", formula_svg("x")), numbers("style", formula_svg("y"))
    assert -0.1 < x < 0 and -0.4 < y < -0.2
    (height,), (fraction,) = (
        numbers("height", formula_svg(r"\frac{1}{N}", display)) for display in (False, True)
    )
    assert fraction > 1.3 * height


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (r"\integral x", r"unknown command \integral"),
        ("x_{i", "a brace without"),
        ("x}", "a brace without"),
        ("x^", "Missing"),
    ],
)
def test_a_wrong_formula_is_shown_with_what_is_wrong(source, message):
    with pytest.raises(FormulaError, match=re.escape(message)) as caught:
        formula_svg(source)
    assert source in str(caught.value)


def test_a_formula_cannot_bring_html():
    with contextlib.suppress(FormulaError):
        assert "<script" not in formula_svg(r"\text{<script>} <b> x")


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
    later = [(CHAPTERS.parent / name, load_rubric(name)) for name in ("steps", "nets")]
    texts = "".join(
        render_markdown(path, rubric)
        for folder, rubric in ((CHAPTERS, RUBRIC), *later)
        for path, _ in chapter_files(folder)
    )
    for name, draw in PICTURES.items():
        assert f"(picture:{name} " in texts
        svg = draw().svg("x")
        for kind in set(" ".join(re.findall(r'class="([^"]+)"', svg)).split()):
            assert f".{kind} " in with_style(svg), kind


def test_the_picture_of_streams_is_as_the_reference_has_it():
    found = assigned([list(each) for each in WAITS])
    assert found == (list(STREAMS), list(EVENTS))


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
