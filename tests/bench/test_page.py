"""The page of `grader bench`: from measurements of several machines, by itself, in a browser."""

import json
import re
import sys

import made_up
import pytest
import vl_convert

import browser
from grader.bench import charts, page
from grader.cli import main

HERE = made_up.measurement("Emulated GPU", "emulated", {"one CPU core": 1, "emulated GPU": 3})


@pytest.fixture
def files(tmp_path):
    """Two measurements."""
    for name, result in (("h100", made_up.measurement()), ("here", HERE)):
        (tmp_path / f"{name}.json").write_text(json.dumps(result))
    return [tmp_path / "h100.json", tmp_path / "here.json"]


@pytest.fixture(scope="module")
def text():
    """The page of both."""
    named = {page.name_of(each["machine"]): each for each in (made_up.measurement(), HERE)}
    return page.page(named)


def rows(chart):
    """What a chart draws."""
    return chart.spec["data"]["values"]


def test_the_speed_up_is_that_over_one_core_of_the_same_point():
    found = rows(charts.speed_up({"a": made_up.measurement()}))
    of_gpu = [r for r in found if r["where"] == "GPU" and r["op"] == "matmul" and r["n"] == 1024]
    assert [(r["times"], r["low"], r["high"]) for r in of_gpu] == [(500, 454.5, 555.6)] * 2
    assert {r["times"] for r in found if r["where"] == "one CPU core"} == {1.0}


def test_a_point_that_one_core_lacks_has_no_speed_up():
    result = made_up.measurement()
    result["points"] = [p for p in result["points"] if p["where"] != "one CPU core"]
    assert rows(charts.speed_up({"a": result})) == []


def test_a_roof_bends_where_arithmetic_takes_as_long_as_memory():
    corners = charts._roof("a", made_up.measurement()["roofs"][0])
    assert [c["intensity"] for c in corners] == pytest.approx([0.05, 67 / 3, 2000])
    assert [c["rate"] for c in corners] == pytest.approx([150, 67000, 67000])


def test_threads_are_shown_by_their_share_of_the_best():
    shares = {r["threads"]: r["share"] for r in rows(charts.threads({"a": made_up.measurement()}))}
    assert shares == {32: 0.5, 256: 1.0, 1024: 0.8333}
    (said,) = {r["takes"] for r in rows(charts.threads({"a": made_up.measurement()}))}
    assert said == "12 registers a thread: occupancy 50%"


def test_targets_are_a_gpus():
    of_gpu = made_up.measurement(wheres={"GPU": 1, "GPU, TF32": 2, "one CPU core": 500})
    found = page.targets({"gpu": of_gpu, "cpu": HERE})
    assert [(t["what"].endswith("TF32"), t["least"], t["times"], t["met"]) for t in found] == [
        (False, 480, 500, True),
        (True, 480, 250, False),
        (False, 148, 500, True),
        (True, 148, 250, True),
    ]


def test_products_in_tf32_are_under_no_roof_of_float32():
    drawn = charts.roofline({"a": made_up.measurement(wheres={"GPU": 1, "GPU, TF32": 0.5})})
    assert {row["where"] for row in drawn.spec["layer"][1]["data"]["values"]} == {"GPU"}


@pytest.mark.parametrize("number", range(6))
def test_a_chart_is_one_that_vega_lite_draws(number):
    chart = page.made({"a": made_up.measurement(), "b": HERE})[number]
    chart.spec["width"] = 300
    next(p for p in chart.spec["params"] if p["name"] == "machine")["value"] = "a"
    drawn = vl_convert.vegalite_to_svg({**chart.spec, "config": charts.CONFIG})
    assert "var(--" in drawn and "NaN" not in drawn


def test_the_page_asks_for_nothing(text):
    assert "default-src 'none'" in text and len(text) < 1_200_000
    own = text.replace(page.script(), "")
    assert len(own) < 100_000 and not re.search(r"(?:src|href|url)[=(]", own)
    assert "a &lt;CPU&gt;" in text and "a <CPU>" not in text


def test_the_page_says_what_was_not_timed(text):
    assert "matmul, 8192 x 8192, forward, one CPU core: a call would take about 11.0 s" in text
    assert "JAX: ModuleNotFoundError" in text


def test_a_page_is_made_from_files_alone(files, tmp_path, capsys):
    command = ["bench", "--output", str(tmp_path), "--page", *map(str, files)]
    assert main.main(command) == main.OK
    assert capsys.readouterr().out == f"wrote {tmp_path / 'bench.html'}\n"
    assert "<option>NVIDIA H100, 2026-11-25</option>" in (tmp_path / "bench.html").read_text()


@pytest.mark.parametrize("content", ["{", "[]", '{"kind": "class"}', None])
def test_a_file_that_is_no_measurement_is_refused(content, tmp_path, capsys):
    path = tmp_path / "x.json"
    if content is not None:
        path.write_text(content)
    assert main.main(["bench", "--output", str(tmp_path), "--page", str(path)]) == main.USAGE
    assert f"grader: {path} is no measurement" in capsys.readouterr().err


def test_without_the_plotting_library_one_is_told_what_to_do(files, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    command = ["bench", "--output", str(tmp_path), "--page", str(files[0])]
    assert main.main(command) == main.USAGE
    assert "pip install 'dlsys-kit[bench]'" in capsys.readouterr().err


# Draws, hovers, switches the machine: in one visit, since a browser takes a second to start.
STEPS = """
<script>
const wait = (ms) => new Promise((done) => setTimeout(done, ms));
addEventListener("load", async () => {
  while (views.length < 6) await wait(20);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const right = (element) => element.getBoundingClientRect().right;
  const shown = (name) => all("#" + name + " .mark-symbol.role-mark path").length;
  const before = shown("speed-up");
  const mark = document.querySelector("#speed-up .mark-symbol.role-mark path");
  const box = mark.getBoundingClientRect();
  const at = {bubbles: true, clientX: box.x + box.width / 2, clientY: box.y + box.height / 2};
  for (const kind of ["pointerover", "pointermove", "mouseover", "mousemove"])
    mark.dispatchEvent(new MouseEvent(kind, at));
  await wait(50);
  const tip = document.getElementById("vg-tooltip-element");
  const said = tip ? tip.innerText : "";
  chosen.value = machines[1];
  chosen.onchange();
  await wait(200);
  document.title = JSON.stringify({
    before, after: shown("speed-up"), said,
    wide: document.documentElement.scrollWidth, drawn: all(".chart svg").length,
    over: all(".chart").filter((each) => right(each.querySelector("svg")) > right(each) + 1).length,
  });
});
</script>"""


@browser.needs_chromium
@pytest.mark.parametrize("width", [400, 1280])
def test_charts_are_drawn_hovered_and_switched(width, text, tmp_path):
    (tmp_path / "page.html").write_text(text + STEPS)
    frame = f'<body><iframe src="page.html" style="width:{width}px;height:900px;border:0">'
    frame += "</iframe><script>setInterval(() => { document.title = document.querySelector("
    frame += '"iframe").contentDocument.title; }, 50);</script>'
    (tmp_path / "frame.html").write_text(frame)
    dom, console = browser.visit(
        tmp_path, (tmp_path / "frame.html").as_uri(), "--allow-file-access-from-files",
        "--virtual-time-budget=6000", f"--window-size={width + 100},900",
    )  # fmt: skip
    assert console == []
    seen = json.loads(re.search(r"<title>(\{.*?\})</title>", dom)[1])
    assert seen["drawn"] == 6 and seen["over"] == 0 and seen["wide"] <= width
    assert "one core" in seen["said"] and "quartiles" in seen["said"]
    assert (seen["before"], seen["after"]) == (8, 4)
