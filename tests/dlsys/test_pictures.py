"""Pictures of graphs and of memory: all is there, nothing lies on something else, files are SVG."""

import itertools
import math
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
import step_graphs
from test_step import CONTEXTS, EVERYWHERE, training

import dlsys
from browser import act, needs_chromium
from dlsys import autodiff, ndarray, ops
from dlsys.autodiff import gradients
from dlsys.pictures import svg
from dlsys.pictures.curves import curves, plane
from dlsys.pictures.graph import Box, graph
from dlsys.pictures.layers import layered
from dlsys.step.measuring import node_names

SVG = "{http://www.w3.org/2000/svg}"
X = ops.variable("x", (3, 4))
W = dlsys.parameter("w", np.ones((4, 2)))


def elements(text, tag):
    return list(ElementTree.fromstring(text).iter(SVG + tag))


def places(found):
    """(x, y, width, height) of elements, without % signs."""
    names = ("x", "y", "width", "height")
    return [[float(each.get(name).rstrip("%")) for name in names] for each in found]


def overlapping(boxes, least=1e-2):
    """Pairs of rectangles that share more than an edge."""
    found = []
    for (a, one), (b, other) in itertools.combinations(enumerate(boxes), 2):
        across = min(one[0] + one[2], other[0] + other[2]) - max(one[0], other[0])
        along = min(one[1] + one[3], other[1] + other[3]) - max(one[1], other[1])
        if across > least and along > least:
            found.append((a, b))
    return found


def drawn(text):
    """[(both lines of a box, its rectangle, its classes, its hint)]."""
    found = []
    for group in elements(text, "g"):
        (box,) = group.iter(SVG + "rect")
        lines = tuple(line.text for line in group.iter(SVG + "text"))
        hint = group.findtext(SVG + "title")
        found.append((lines, places([box])[0], box.get("class").split(), hint))
    return found


def test_a_graph_has_a_box_for_each_node_with_shape_and_dtype():
    boxes = drawn(dlsys.draw(ops.relu(X @ W) * 2.5))
    assert [lines for lines, *_ in boxes] == [
        ("x", "float64 3×4"), ("w", "float64 4×2"), ("matmul", "float64 3×2"),
        ("relu", "float64 3×2"), ("mul_by_const 2.5", "float64 3×2"),
    ]  # fmt: skip
    kinds = [classes[2] for _, _, classes, _ in boxes]
    assert kinds == ["grey", "amber", "blue", "blue", "blue"]
    assert "(x@w)" in boxes[2][3] and "test_pictures.py" in boxes[2][3]


def test_where_no_shape_is_known_none_is_told():
    a, b = autodiff.Variable("a"), autodiff.Variable("b")
    assert [lines for lines, *_ in drawn(dlsys.draw([a * b]))] == [("a",), ("b",), ("mul",)]


def test_what_the_first_node_does_not_need_has_a_dashed_border():
    loss = ops.sum(ops.square(X @ W))
    boxes = drawn(dlsys.draw([loss, *gradients(loss, [W])]))
    solid = [lines[0] for lines, _, classes, _ in boxes if "dashed" not in classes]
    assert solid.count("square") == solid.count("sum") == solid.count("matmul") == 1
    dashed = [lines[0] for lines, _, classes, _ in boxes if "dashed" in classes]
    assert "product_gradient" in dashed and "x" not in dashed


def test_every_box_stands_below_its_inputs_and_on_no_other():
    for seed in range(12):
        outputs, updates, _ = step_graphs.training(seed)
        text = dlsys.draw([*outputs, *updates.values()])
        boxes = drawn(text)
        assert overlapping([place for _, place, *_ in boxes]) == []
        width, height = (float(ElementTree.fromstring(text).get(n)) for n in ("width", "height"))
        for _, (x, y, wide, high), *_ in boxes:
            assert x >= 0 and y >= 0 and x + wide <= width and y + high <= height
        nodes = autodiff.find_topo_sort([*outputs, *updates.values()])
        assert len(boxes) >= len(nodes)
        assert {hint.split("\n")[0] for *_, hint in boxes} == {
            svg.shortened(node.name, 200) for node in nodes
        }


def test_layers_go_down_along_every_edge():
    inputs = {0: [], 1: [], 2: [0, 1], 3: [2], 4: [3, 0], 5: [2, 4]}
    found = layered(inputs, dict.fromkeys(inputs, 50), 10)
    assert found.layers == 5
    for node, read in inputs.items():
        for each in read:
            assert found.places[each][1] < found.places[node][1]
            route = found.routes[each, node]
            assert route[0] == found.places[each] and route[-1] == found.places[node]
            layers = [layer for _, layer in route]
            assert layers == list(range(layers[0], layers[-1] + 1))


def test_an_input_is_drawn_again_near_a_distant_reader():
    node = X
    for _ in range(6):
        node = ops.tanh(node)
    boxes = drawn(dlsys.draw(node + X))
    heights = sorted(place[1] for lines, place, *_ in boxes if lines[0] == "x")
    assert len(heights) == 2 and heights[1] - heights[0] > 200


@EVERYWHERE
def test_a_step_is_drawn_as_it_runs_with_the_numbers_of_its_kernels(ctx):
    step, feeds = training(ctx)
    with pytest.raises(ValueError, match=r"nothing has run yet; hint: step.profile\(feeds\)"):
        dlsys.draw(step)
    profile = step.profile(feeds, runs=1)
    boxes = drawn(dlsys.draw(step, "a step"))
    assert sum(lines[1:] == ("new value",) for lines, *_ in boxes) == len(step.state)
    if ctx is None:
        return
    said = {}
    for lines, _, classes, hint in boxes:
        number, _, name = lines[0].rpartition(" · ")
        if number:
            assert name and "plain" not in classes
            said.setdefault(hint.split("\n")[0], set()).update(map(int, number.split(",")))
    for place, kernel in enumerate(profile.kernels):
        for name in kernel.nodes:
            assert place in said[svg.shortened(name, 200)]


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "a & b", "\0\x1b[31m", "ü" * 500])
def test_any_name_gives_a_well_formed_picture(name):
    x = ops.variable(name, (2,))
    text = dlsys.draw(ops.tanh(x) + x, title=name)
    assert elements(text, "script") == [] and len(drawn(text)) == 3
    assert all(len(lines[0]) <= 24 for lines, *_ in drawn(text))


def test_a_picture_can_be_shown_and_saved_and_follows_a_dark_screen(tmp_path):
    text = dlsys.draw(X * 2, "twice")
    assert text._repr_svg_() == text and "prefers-color-scheme: dark" in text
    assert "var(" not in text and "url(" not in text  # which not every program knows
    text.save(tmp_path / "twice.svg")
    root = ElementTree.parse(tmp_path / "twice.svg").getroot()
    assert root.get("aria-label") == "twice"
    assert root.get("viewBox") == f"0 0 {root.get('width')} {root.get('height')}"


def test_what_is_no_node_is_refused():
    with pytest.raises(TypeError):
        dlsys.draw([3])


def test_an_empty_graph_is_a_picture_too():
    assert elements(dlsys.draw([]), "g") == []


def test_four_hundred_nodes_are_drawn_in_a_second():
    boxes = [Box(n, [n - 5, n - 9] if n > 8 else [], f"node {n}") for n in range(400)]
    assert len(drawn(graph("many", boxes))) == 400


# --- memory ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("ctx", [CONTEXTS["cpu"], CONTEXTS["gpu"]], ids=["cpu", "gpu"])
@pytest.mark.parametrize("own_products", [False, True])
def test_memory_has_a_box_for_each_buffer_with_its_node_bytes_and_life(
    ctx, own_products, monkeypatch
):
    if own_products:  # as on a real GPU
        monkeypatch.setattr(ndarray, "is_emulated", lambda: False)
    step, feeds = training(ctx)
    text = step.memory_svg(feeds)
    program = step.run_of(feeds).program
    boxes = [each for each in elements(text, "svg") if each.get("x", "").endswith("%")]
    assert len(boxes) == len(program.offsets) >= 8
    hints = [box.findtext(SVG + "title").split("\n") for box in boxes]
    assert {int(hint[1].rpartition(" at ")[2]) for hint in hints} == set(program.offsets.values())
    names = {svg.shortened(n, 200) for each in program.instructions for n in node_names(each)}
    count = len(program.instructions)
    for (name, _, first, last), place in zip(hints, places(boxes), strict=True):
        assert name in names or name == "room for parts of sums"
        begin, end = (int(line.split()[1].rstrip(":")) for line in (first, last))
        assert begin <= end
        # Half an instruction less at an end where one takes over from another.
        assert -1e-3 <= place[0] * count / 100 - begin <= 0.5 + 1e-3
        assert -1e-3 <= end + 1 - (place[0] + place[2]) * count / 100 <= 0.5 + 1e-3
    lines = [each for each in elements(text, "line") if "mark" in each.get("class", "")]
    solid, dashed = sorted(lines, key=lambda each: "dashed" in each.get("class"))
    assert float(solid.get("y1")) == 0 <= float(dashed.get("y1"))


def test_no_two_buffers_lie_on_one_another_while_both_live():
    handed_over = 0
    for seed in range(3):
        outputs, updates, feeds = step_graphs.training(seed)
        step = dlsys.compile(outputs, updates, CONTEXTS["cpu"], fuse=False)
        text = step.memory_svg(feeds)
        boxes = places(e for e in elements(text, "svg") if e.get("x", "").endswith("%"))
        assert overlapping(boxes) == []
        handed_over += any(b[0] * len(step.run_of(feeds).program.instructions) % 100 > 40
                           for b in boxes)  # fmt: skip
    assert handed_over


def test_the_lower_bound_is_that_of_explain(capsys):
    step, feeds = training(CONTEXTS["cpu"])
    step.explain(feeds)
    said = capsys.readouterr().out
    run = step.run_of(feeds)
    assert f"memory: {run.program.peak} bytes; lower bound for this order: {run.bound};" in said
    assert svg.size_said(run.bound) in step.memory_svg(feeds)


def test_numpy_has_no_plan_to_draw():
    step, feeds = training(None)
    with pytest.raises(ValueError, match="numpy has no plan of memory; hint: compile"):
        step.memory_svg(feeds)
    with pytest.raises(ValueError, match=r"nothing has run yet; hint: step.memory_svg\(feeds\)"):
        step.memory_svg()


@pytest.mark.parametrize(
    "most, wanted", [(0, [0]), (0.3, [0, 0.1, 0.2, 0.3]), (7, [0, 2, 4, 6]), (143, [0, 50, 100]),
                     (99999, [0, 20000, 40000, 60000, 80000])],
)  # fmt: skip
def test_ticks_are_round_and_few(most, wanted):
    np.testing.assert_allclose(svg.ticks(most), wanted)


def test_sizes_and_times_have_three_figures():
    sizes = [svg.size_said(n) for n in (0, 999, 1000, 12_345_678, 5e12)]
    assert sizes == ["0 B", "999 B", "1 kB", "12.3 MB", "5e+03 GB"]
    assert [svg.time_said(t) for t in (0.1234, 999.7, 4567)] == ["0.123 us", "1 ms", "4.57 ms"]


# --- in a browser ---------------------------------------------------------------------------------

#: How far each text reaches beyond the box that it stands in, or beyond the page.
_BEYOND = """
const beyond = (outer, inner) => inner.right - outer.right;
const found = [...page.querySelectorAll("g")].flatMap(group => {
  const box = group.querySelector("rect").getBoundingClientRect();
  return [...group.querySelectorAll("text")].map(
    text => [text.textContent, beyond(box, text.getBoundingClientRect())]);
});
const free = [...page.querySelectorAll("svg.dlsys > text")].map(
  text => [text.textContent, text.getBoundingClientRect().right - view.innerWidth]);
return {boxes: found, free: free, wide: page.documentElement.scrollWidth - view.innerWidth};
"""


@needs_chromium
def test_words_fit_in_their_boxes(tmp_path):
    outputs, updates, _ = step_graphs.training(3)
    wide = ops.variable("WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW", (1000000, 1000000))
    text = dlsys.draw([*outputs, *updates.values(), wide * 0.12345, ops.softmax(wide)])
    found, _ = act(tmp_path, text, _BEYOND)
    assert len(found["boxes"]) > 20
    too_long = [words for words, beyond in found["boxes"] if beyond > 0 and "WW" not in words]
    assert too_long == []


@needs_chromium
@pytest.mark.parametrize("width", [400, 1280])
def test_a_timeline_and_a_plan_of_memory_fit_on_a_page_of_any_width(width, tmp_path):
    step, feeds = training(CONTEXTS["cpu"])
    profile = step.profile(feeds, runs=1)
    style = "<style>body { margin: 0 }</style>"
    for text in (profile.svg(), step.memory_svg()):
        found, _ = act(tmp_path, style + text, _BEYOND, width)
        assert found["wide"] <= 0 and found["free"]
        assert [words for words, beyond in found["free"] if beyond > 0] == []


def test_curves_reach_from_border_to_border_and_mark_points():
    lines = {"square": ([0, 1, 2], [0, 1, 4])}
    drawn = curves("a title", lines, [(1, 1)], "x", "y", y_range=(0, 4))
    root = ElementTree.fromstring(drawn)
    path = next(each for each in root if each.tag.endswith("path"))
    places = [tuple(map(float, each.split())) for each in path.get("d")[1:].split("L")]
    assert places[0] == (52, 220) and places[-1] == (406, 28)
    (dot,) = [each for each in root if each.tag.endswith("circle")]
    assert float(dot.get("cx")) == pytest.approx(places[1][0], abs=0.1)


def test_curves_leave_out_what_is_no_number_or_outside():
    ys = [0.0, 1.0, math.nan, 1.0, 9.0, 2.0, 0.0]
    drawn = curves("", {"a": (range(7), ys)}, y_range=(0, 2))
    path = next(each for each in ElementTree.fromstring(drawn) if each.tag.endswith("path"))
    parts = [len(part.split("L")) for part in path.get("d")[1:].split("M")]
    assert parts == [2, 1, 2]


def test_a_plane_has_the_lowest_row_below():
    drawn = plane("", [[0, 0], [1, 1]], [(0.5, -0.5, 0)])
    root = ElementTree.fromstring(drawn)
    rows = [each for each in root if each.get("class") in ("blue", "amber")]
    assert [each.get("class") for each in rows] == ["blue", "amber"]
    assert float(rows[0].get("y")) > float(rows[1].get("y"))
    (dot,) = [each for each in root if each.tag.endswith("circle")]
    assert float(dot.get("cy")) > float(rows[0].get("y"))


@pytest.mark.parametrize("what", [3, None, [3], "x"])
def test_a_picture_of_what_has_no_nodes_is_refused(what):
    with pytest.raises(
        TypeError, match=r"a picture of .*; hint: a node, a list of nodes, or a step"
    ):
        dlsys.draw(what)
