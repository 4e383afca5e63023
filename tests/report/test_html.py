"""The HTML page: what is in it, that it is safe and needs nothing, and how a browser shows it."""

import json
import re
import struct

import numpy as np
import pytest

import sample_report
from browser import act, chromium, needs_chromium
from grader.checks.harness.compare import Failure, mismatch, verify
from grader.report.audience import student_view
from grader.report.charts import bar_svg, losses_svg, mismatch_svg, read_mismatch
from grader.report.html import to_html
from html_page import Page
from sample_report import HOSTILE, result


def test_the_page_holds_all_that_a_report_says():
    text = Page(to_html(sample_report.report())).text
    for words in (
        "Autodiff and a GPU graph executor", "4 of 8 checks passed", "Part 1, autodiff",
        "Part 2: gpu executor", "2.11", "relu does what it should", "second line",
        "Write behind the end: src/gpu_op.cu:2", "thread 3 writes 4 bytes", "1.1 topological",
        "not run", "needs relu", "grader failed", "open / 1", "secret disk is full",
        "shown after the due date", "never shown", "mlp on gpu", "accuracy 0.9100, at least 0.8",
        "0.25 s", "6.0 s", "12 s in all", "seed 5ec4e7", "\\u202e",
        "Where the output of shape (100, 40): rows down, columns across, is wrong.",
    ):  # fmt: skip
        assert words in text, words


def test_a_students_page_lacks_what_is_hidden_and_says_so():
    text = Page(to_html(student_view(sample_report.report()))).text
    assert "3 of 6 public checks passed" in text
    assert "1 hidden one is graded after the due date; 1 hidden one is never shown" in text
    assert "Hidden checks are worth 3 more" in text
    for secret in ("memory_plan does", "hidden mistake", "secret", "5ec4e7", "/home/teacher"):
        assert secret not in text


def test_hostile_text_makes_no_element_no_attribute_and_no_request():
    everywhere = sample_report.report(
        [result(HOSTILE, "fail", HOSTILE, message=HOSTILE, hint=HOSTILE, details=[HOSTILE],
                facts={HOSTILE: 1, "mismatch": {"shape": HOSTILE}},
                findings=[{"title": HOSTILE, "text": HOSTILE}, {"odd": HOSTILE}])],
        submission=HOSTILE, title=HOSTILE, problem=HOSTILE, notes=[HOSTILE], profile=HOSTILE,
        device=HOSTILE, isolation=HOSTILE, seed=HOSTILE, started=HOSTILE,
        parts={HOSTILE: HOSTILE}, tasks={HOSTILE: HOSTILE},
    )  # fmt: skip
    for report in (everywhere, sample_report.report()):
        text = to_html(report)
        page = Page(text)
        text.encode("utf-8")
        assert not {"script", "img", "link", "iframe", "object", "form", "base"} & set(page.tags)
        for name, value in page.attributes:
            assert not name.startswith("on") and name != "src", name
            assert name != "href" or value.startswith("#check-")
        assert not any(word in style for style in page.styles for word in ("url(", "@import"))
        assert "default-src 'none'" in dict(page.attributes)["content"] or "default-src" in text
        assert not any(ord(c) < 32 and c != "\n" for c in text)


def test_a_page_of_nothing_is_still_a_page():
    page = Page(to_html(sample_report.report([], complete=False, seconds=0.0)))
    assert "No check ran; the grading did not finish." in page.text


def holes():
    """A task that is not begun, one that waits for it, and one that is wrong."""
    message = "task 1.1 is not written yet"
    return [
        result("topological_order", "fail", task="1.1", message=message),
        result("gradients", "fail", task="1.6", message=message),
        result("relu", "fail", message="wrong"),
        result("build", task="", points=0.0),
    ]


def states(text):
    return re.findall(r'<article class="check (\w+)"', text)


def test_a_task_that_nobody_has_begun_did_not_fail():
    text = to_html(sample_report.report(holes()))
    assert states(text) == ["pass", "unbegun", "skipped", "fail"]
    page = Page(text).text
    assert "To fix: relu Not begun: topological_order Trainings" not in page
    assert "To fix: relu Not begun: topological_order failed checks only" in page


def test_the_skeleton_has_nothing_to_mend_and_no_switch():
    text = Page(to_html(sample_report.report(holes()[:2]))).text
    assert "To fix" not in text and "failed checks only" not in text


def test_a_finding_stands_once_and_other_checks_refer_to_it():
    again = {**sample_report.finding(), "thread": [9, 0, 0], "text": "another thread"}
    other = {**sample_report.finding(), "line": 7, "text": "another line"}
    rows = [
        result("relu", "fail", findings=[sample_report.finding(), other]),
        result("feed_shapes", "fail", task="2.12", findings=[again, again, other]),
        result("softmax", "fail", task="2.13", findings=[{"title": "odd"}, {"odd": 1}]),
    ]
    text = to_html(sample_report.report(rows))
    assert "another thread" not in text and text.count("another line") == 1
    second = text[text.index('id="check-1"') : text.index('id="check-2"')]
    assert second.count("Write behind the end") == 2
    assert second.count('; see <a href="#check-0">relu</a>') == 2
    assert text.count('class="finding">') == 6


# --- pictures -----------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1,), (31,), (32,), (33,), (1025,), (40000,), (1, 1), (33, 31),
                                   (1025, 10), (3, 1025), (7, 2, 3, 5)])  # fmt: skip
def test_a_picture_counts_each_element_once(shape):
    wrong = np.random.default_rng(1).random(shape) < 0.4
    picture = mismatch(wrong)
    cells = picture["cells"]
    assert len(cells) <= 32 and {len(line) for line in cells} == {len(cells[0])}
    assert len(cells[0]) <= 32
    rows, columns = picture["rows"], picture["columns"]
    assert rows * columns >= wrong.size > (rows - 1) * columns
    assert json.loads(json.dumps(picture)) == picture
    for flags, value in ((np.zeros(shape, bool), 0), (np.ones(shape, bool), 1)):
        assert {f for line in mismatch(flags)["cells"] for f in line} - {None} == {value}


def test_a_picture_shows_where_and_never_loses_one_element_of_a_million():
    wrong = np.zeros((1000, 1000), bool)
    wrong[999, 0] = True
    cells = mismatch(wrong)["cells"]
    assert [(r, c) for r in range(32) for c in range(32) if cells[r][c]] == [(31, 0)]
    exact = np.eye(5, 7, dtype=bool)
    assert mismatch(exact)["cells"] == exact.astype(float).tolist()


def test_the_end_of_a_vector_is_no_cell():
    cells = mismatch(np.ones(33, bool))["cells"]
    assert cells[0] == [1.0] * 32 and cells[1] == [1.0] + [None] * 31


def test_verify_says_where_an_array_is_wrong_but_not_where_a_number_is():
    with pytest.raises(Failure) as caught:
        verify(np.array([[1.0, 2.0], [3.0, 9.0]]), [[1.0, 2.0], [3.0, 4.0]], 0, "f")
    assert caught.value.facts["mismatch"]["cells"] == [[0, 0], [0, 1]]
    with pytest.raises(Failure) as caught:
        verify(np.array(1.0), 2.0, 0, "f")
    assert caught.value.facts == {}


def test_the_svg_has_a_dark_cell_where_it_is_wrong():
    svg = mismatch_svg(read_mismatch({"mismatch": mismatch(np.eye(2, dtype=bool))}))
    assert svg.count('class="bad" fill-opacity="1.00"') == 2
    assert svg.count('class="right"') == 2


@pytest.mark.parametrize(
    "raw",
    [None, 3, [], {}, {"shape": [2], "rows": 1, "columns": 2, "cells": []},
     {"shape": [2], "rows": 1, "columns": 2, "cells": [[2.0, 0]]},
     {"shape": [2], "rows": 1, "columns": 2, "cells": [[0], [0, 1]]},
     {"shape": [2], "rows": 1, "columns": 2, "cells": [["<b>", 0]]},
     {"shape": ["<b>"], "rows": 1, "columns": 2, "cells": [[0, 0]]},
     {"shape": [2], "rows": 1, "columns": 2, "cells": [[float("nan"), 0]]},
     {"shape": [99], "rows": 1, "columns": 99, "cells": [[0] * 99]}],
)  # fmt: skip
def test_facts_that_are_no_picture_are_not_drawn(raw):
    assert read_mismatch({"mismatch": raw}) is None


def test_bars_and_lines_stay_in_their_box():
    assert 'width="100.00"' in bar_svg(7, 5, "time") and 'width="0.00"' in bar_svg(0, 5, "time")
    assert losses_svg([float("nan"), 1.0]) == ""
    assert 'points="2.0,2.0 98.0,12.0"' in losses_svg([2.0, 1.0])


# --- in a browser -------------------------------------------------------------------------------

# Measures the page in a frame of its own width; the frame's policy stays in force in it.
WRAPPER = """<!doctype html><title>not measured</title><body style="margin:0">
<iframe id="f" style="width:%dpx;height:800px;border:0"></iframe><pre id="out"></pre><script>
const frame = document.getElementById("f");
frame.onload = () => {
  const page = frame.contentDocument, view = frame.contentWindow;
  const wide = [...page.querySelectorAll("main *")].filter(
    e => !e.closest("svg") && e.getBoundingClientRect().right > view.innerWidth + 0.5);
  document.getElementById("out").textContent = JSON.stringify({
    overflow: page.documentElement.scrollWidth - page.documentElement.clientWidth,
    wide: wide.map(e => e.tagName + "." + e.className),
    title: page.title, width: view.innerWidth, checks: page.querySelectorAll(".check").length,
    requests: view.performance.getEntriesByType("resource").map(e => e.name),
    bad: view.getComputedStyle(page.querySelector("svg .bad")).fill,
    small: Math.min(...[...page.querySelectorAll("p, pre, td, figcaption")].map(
      e => parseFloat(view.getComputedStyle(e).fontSize))),
    drawn: [...page.querySelectorAll("figure svg")].map(e => e.getBoundingClientRect().width),
  });
};
frame.srcdoc = %s;
</script>"""


def measure(folder, text, width):
    script = json.dumps(text).replace("</", "<\\/").replace("<!--", "<\\!--")
    (folder / "wrapper.html").write_text(WRAPPER % (width, script))
    url = (folder / "wrapper.html").as_uri()
    out = chromium(folder, "--virtual-time-budget=10000", "--dump-dom", url)
    raw = out.partition('<pre id="out">')[2].partition("</pre>")[0]
    return json.loads(raw.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))


@needs_chromium
@pytest.mark.parametrize("width", [390, 1200])
def test_the_page_fits_a_phone_and_a_desk_and_asks_for_nothing(tmp_path, width):
    long = result("x" * 300, "fail", message="y" * 900, details=["z" * 900], points=1.0)
    report = sample_report.report([*sample_report.results(), long])
    seen = measure(tmp_path, to_html(report), width)
    assert seen["width"] == width
    assert seen["overflow"] == 0 and seen["wide"] == []
    assert seen["requests"] == []
    assert seen["title"].startswith("4 / 11:") and "owned" not in seen["title"]
    assert seen["checks"] == 9
    assert seen["bad"] == "rgb(207, 34, 46)"
    assert seen["small"] >= 12
    assert seen["drawn"][0] > 150


@needs_chromium
def test_a_switch_shows_failed_checks_alone_without_a_script(tmp_path):
    steps = """const seen = () => [...page.querySelectorAll(".check, h2")].filter(
        e => e.offsetParent !== null).map(e => e.id || e.textContent);
      const all = seen().length; page.querySelector("label").click();
      return {all: all, left: seen()}"""
    seen, console = act(tmp_path, to_html(sample_report.report(holes())), steps)
    assert seen["all"] == 8 and console == []
    assert seen["left"] == ["Part 2: gpu executor", "check-2", "Where the time went"]


@needs_chromium
def test_the_page_works_from_a_file_and_prints(tmp_path):
    path = tmp_path / "report.html"
    path.write_text(to_html(sample_report.report()))
    dom = chromium(tmp_path, "--dump-dom", path.as_uri())
    assert "<title>4 / 10" in dom and "thread 3 writes 4 bytes" in dom
    assert "<title>owned" not in dom
    chromium(
        tmp_path, f"--screenshot={tmp_path / 'p.png'}", "--window-size=1200,900", path.as_uri()
    )
    png = (tmp_path / "p.png").read_bytes()
    assert struct.unpack(">II", png[16:24]) == (1200, 900)
    assert len(png) > 20000  # a blank page has fewer
    chromium(tmp_path, f"--print-to-pdf={tmp_path / 'p.pdf'}", path.as_uri())
    assert (tmp_path / "p.pdf").read_bytes().startswith(b"%PDF")
