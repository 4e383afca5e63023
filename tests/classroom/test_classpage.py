"""The class page: what is on it, links, hostile students, and how it works in a browser."""

import dataclasses
import re
from pathlib import Path
from urllib.parse import urljoin, urlsplit
from urllib.request import url2pathname

import pytest

import sample_report
from browser import act, chromium, needs_chromium, visit
from grader.classroom.page import (
    class_page,
    fixed,
    gather,
    percent,
    student_page,
    write_student_pages,
)
from grader.classroom.store import Entry
from grader.course.rubric import load_rubric
from html_page import Page
from sample_class import FOLDERS, book_of, hostile_book, text_of
from simulated import simulate

#: Those of the profile that the simulated class is graded by.
CHECKS = len(load_rubric("speed").rows)


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """300 students with pages of their own, and the class page."""
    book = simulate(tmp_path_factory.mktemp("class") / "results", 300, seed=1)
    results = gather(book)
    write_student_pages(results)
    return results


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """3,000 students."""
    return gather(simulate(tmp_path_factory.mktemp("many") / "results", 3000, seed=2))


class TablePage(Page):
    """A page with its tables: rows of texts by the table's id; and the text of its scripts."""

    def __init__(self, text):
        self.rows, self.scripts, self._table = {}, [], ""
        super().__init__(text)

    def handle_starttag(self, tag, attrs):
        super().handle_starttag(tag, attrs)
        if tag == "table":
            self._table = dict(attrs).get("id", "")
            self.rows[self._table] = []
        if tag == "tr":
            self.rows[self._table].append([])
        if tag in ("td", "th"):
            self.rows[self._table][-1].append("")

    def handle_data(self, data):
        if self._open[-1:] == ["script"]:
            self.scripts.append(data)
            return
        super().handle_data(data)
        if {"td", "th"} & set(self._open):
            self.rows[self._table][-1][-1] += data


# --- what is on the page ------------------------------------------------------------------------


def test_the_page_holds_the_class_without_a_script(simulated):
    page = TablePage(text_of(simulated))
    students = page.rows["students"]
    assert len(students) == 301
    by_name = {row[0].split()[-1]: row for row in students[1:]}
    for standing in simulated.standings:
        row = by_name[standing.entry.student]
        shown = {"graded": f"{standing.score:g}", "unreadable": "0", "error": "open"}
        assert row[1] == shown.get(standing.state, "–")
        assert standing.entry.name in row[0]
    assert len(page.rows["items"]) == 1 + CHECKS
    counts = simulated.figures.states
    assert f"300 students: {counts['graded']} graded" in page.text
    assert "Mean " in page.text and "Cronbach's alpha 0." in page.text


def test_errors_of_the_grader_stand_before_everything_else(simulated):
    page = text_of(simulated)
    assert simulated.figures.states["error"] > 0
    assert page.index("no space left on device") < page.index('id="scores"')
    first = page.index("Left open")
    assert first < page.index('<h2 id="scores"') and first < page.index("<table")


def test_marks_of_a_strip_are_told_in_words(simulated):
    standing = next(s for s in simulated.standings if s.state == "graded" and s.score < 20)
    failed = [name for name, o in standing.outcomes.items() if o.status == "fail"]
    title = f"failed: {', '.join(failed)}"
    assert re.search(rf"<title>\d+ of {CHECKS} passed; {title}(;|<)", text_of(simulated))


def test_sizes_are_sensible(simulated, many):
    assert len(text_of(simulated).encode()) < 1_500_000
    assert len(text_of(many).encode()) < 10 * len(text_of(simulated).encode())


def test_a_class_of_nobody_has_a_page(tmp_path):
    text = text_of(gather(book_of(tmp_path, [])))
    assert "0 students: none yet" in Page(text).text
    assert "Nobody has a final score yet." in Page(text).text


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "–"), (-0.001, "0.00"), (-0.25, "-0.25"), (1.0, "1.00")],
)
def test_figures_have_fixed_places_and_no_negative_zero(value, shown):
    assert fixed(value) == shown


def test_all_and_none_are_not_rounded_to():
    assert [percent(v) for v in (None, 0, 0.001, 0.5, 0.999, 1)] == [
        "–", "0 %", "1 %", "50 %", "99 %", "100 %",
    ]  # fmt: skip


def test_what_has_no_report_is_never_a_zero(tmp_path):
    book = simulate(tmp_path / "results", 60, seed=7)
    results = gather(book)
    without = [s for s in results.standings if s.state in ("missing", "pending", "error")]
    assert {"missing", "pending"} <= {s.state for s in without}
    less = dataclasses.replace(
        book, entries=[s.entry for s in results.standings if s not in without]
    )
    assert gather(less).figures.scores == results.figures.scores
    assert gather(less).figures.alpha == results.figures.alpha


def test_what_is_not_begun_is_no_failure_and_has_a_mark_of_its_own(tmp_path):
    rows = [
        sample_report.result("relu", "fail", message="wrong"),
        sample_report.result("softmax", "fail", message="task 2.13 is not written yet"),
    ]
    students = [(Entry(f"s{n}", f"s{n}", source="x"), sample_report.report(rows)) for n in "12"]
    results = gather(book_of(tmp_path, students))
    (failure,) = results.figures.failures
    assert (failure.check, failure.count) == ("relu", 2)
    assert [(i.failed, i.unbegun, i.share) for i in results.figures.items] == [(2, 0, 0), (0, 2, 0)]
    page = TablePage(text_of(results))
    assert [row[0] for row in page.rows["ways"]] == ["Check", "relu"]
    assert "0 of 2 passed; failed: relu; not begun: softmax" in page.text
    assert ("data-marks", "fu") in page.attributes


def test_a_note_stands_once_with_all_of_whom_it_is_said(tmp_path):
    note = "passed over: report.pdf"
    students = [
        (Entry(f"s{n}", f"s{n}", source="x", notes=[note, *["late"] * (n == 3)]), None)
        for n in range(9)
    ]
    page = Page(text_of(gather(book_of(tmp_path, students, notes=[note, "a file at the top"]))))
    assert page.text.count(note) == 1
    assert f"{note}: s0, s1, s2, s3, s4, s5 and 3 more a file at the top late: s3" in page.text


# --- links --------------------------------------------------------------------------------------


def links(text):
    return [
        value
        for name, value in Page(text).attributes
        if name == "href" and not value.startswith("#")
    ]


@pytest.mark.parametrize("where", ["class.html", "../else where/100%/class.html"])
def test_links_lead_to_the_students_pages_whatever_their_names(tmp_path, where):
    folder = tmp_path / "rés%41 #1?"
    reports = [(Entry(name, name, source="x"), sample_report.report()) for name in FOLDERS]
    results = gather(book_of(folder, reports))
    page = folder / where
    assert links(class_page(results, page)) == []
    assert write_student_pages(results) == len(FOLDERS)
    found = set()
    for link in links(class_page(results, page)):
        assert not urlsplit(link).scheme, link
        path = urlsplit(urljoin(page.resolve().as_uri(), link)).path
        found.add(Path(url2pathname(path)).resolve())
    assert found == {student_page(results.book, e).resolve() for e in results.book.entries}


def test_a_damaged_report_has_no_page_and_is_an_error(tmp_path):
    good, bad = Entry("good", "good", source="x"), Entry("bad", "bad", source="x")
    book = book_of(tmp_path, [(good, sample_report.report([])), (bad, None)])
    book.folder(bad).mkdir(parents=True)
    book.report_path(bad).write_text('{"schema": ')
    results = gather(book)
    assert write_student_pages(results) == 1
    assert results.figures.states["error"] == 1
    assert "is not JSON" in Page(text_of(results)).text


# --- hostile text -------------------------------------------------------------------------------


def test_hostile_text_makes_no_element_no_attribute_and_no_request(tmp_path):
    results = gather(hostile_book(tmp_path))
    write_student_pages(results)
    text = text_of(results)
    page = TablePage(text)
    text.encode("utf-8")
    assert page.tags.count("script") == 1 and len(page.scripts) == 1
    assert "owned" not in page.scripts[0] and "</" not in page.scripts[0]
    assert not {"img", "link", "iframe", "object", "base"} & set(page.tags)
    for name, value in page.attributes:
        assert not name.startswith("on") and name != "src", name
        assert name != "href" or value.startswith(("#", "./students/")), value
    assert not any(word in style for style in page.styles for word in ("url(", "@import"))
    assert not any(ord(c) < 32 and c not in "\t\n" for c in text)
    assert "owned" in page.text and "\\u202e" in page.text


@needs_chromium
def test_hostile_text_stays_text_in_a_browser(tmp_path):
    results = gather(hostile_book(tmp_path / "class"))
    steps = """return {title: page.title, images: page.querySelectorAll("img").length,
        requests: view.performance.getEntriesByType("resource").length,
        rows: page.querySelectorAll("#students tbody tr").length}"""
    seen, console = act(tmp_path, text_of(results), steps)
    assert seen["title"] == "A <class>: 9 students"
    assert (seen["images"], seen["requests"], seen["rows"]) == (0, 0, 9)
    assert console == []


# --- in a browser -------------------------------------------------------------------------------

STEPS = """
const table = page.getElementById("students"), form = page.getElementById("filter");
const rows = () => [...table.tBodies[0].rows].filter(row => !row.hidden);
const column = i => rows().map(row => row.cells[i].textContent.trim());
const heads = [...table.tHead.rows[0].cells];
const said = () => page.getElementById("said").textContent;
const click = i => { heads[i].querySelector("button").click();
  return {column: column(i), sorted: heads[i].getAttribute("aria-sort"), said: said(),
    others: heads.filter(h => h.hasAttribute("aria-sort")).length}; };
const set = values => {
  for (const [name, value] of Object.entries(values)) {
    const field = form.elements[name];
    field.value = value;
    field.dispatchEvent(new view.Event("input", {bubbles: true}));
  }
  return {ids: rows().map(r => r.cells[0].querySelector("small").textContent), said: said()};
};
const timed = work => { const start = performance.now(); work();
  table.getBoundingClientRect(); return performance.now() - start; };
const out = {heads: heads.map(h => h.textContent), all: rows().length,
  buttons: heads.map(h => h.querySelectorAll("button").length),
  focus: (() => { const b = heads[1].querySelector("button"); b.focus();
    return page.activeElement === b; })()};
"""


@needs_chromium
def test_the_table_sorts_and_says_so(simulated, tmp_path):
    steps = STEPS + "out.down = click(1); out.up = click(1); out.names = click(0); return out;"
    out, console = act(tmp_path, text_of(simulated), steps)
    assert console == []
    assert out["heads"][:2] == ["Student", "Score"] and out["all"] == 300
    assert out["buttons"] == [1, 1, 0, 1, 1, 1, 1, 1] and out["focus"]
    for kind, reverse in (("up", False), ("down", True)):
        numbers = [float(t) for t in out[kind]["column"] if t not in ("–", "open")]
        assert numbers == sorted(numbers, reverse=reverse) and len(numbers) > 280
        assert set(out[kind]["column"][len(numbers) :]) == {"–", "open"}, "no value stands last"
        assert out[kind]["others"] == 1
    assert out["down"]["sorted"] == "descending" and out["up"]["sorted"] == "ascending"
    assert out["down"]["said"] == "Sorted by Score, the largest first."
    assert out["names"]["column"][0].startswith("Ada Adeyemi")
    assert out["names"]["sorted"] == "ascending" and out["names"]["others"] == 1


@needs_chromium
def test_figures_below_zero_sort_as_numbers(simulated, tmp_path):
    values = [0.1, -0.5, None, -0.75, 0.0]
    items = [
        dataclasses.replace(item, correlation=value)
        for item, value in zip(simulated.figures.items, values, strict=False)
    ]
    figures = dataclasses.replace(simulated.figures, items=items)
    steps = """
      const table = page.getElementById("items"), heads = [...table.tHead.rows[0].cells];
      const head = heads.find(h => h.textContent === "Correlation");
      head.querySelector("button").click();
      return {column: [...table.tBodies[0].rows].map(r => r.cells[head.cellIndex].textContent),
        said: page.getElementById("said-checks").textContent}"""
    out, _ = act(tmp_path, text_of(dataclasses.replace(simulated, figures=figures)), steps)
    assert out["column"] == ["0.10", "0.00", "-0.50", "-0.75", "–"]
    assert out["said"] == "Sorted by Correlation, the largest first."


@needs_chromium
def test_the_table_filters_by_words_state_and_check(simulated, tmp_path):
    names = [check.name for check in simulated.checks]
    relu = names.index("relu")
    steps = (
        STEPS
        + f"""
      out.words = set({{words: "émile BERG"}}); out.ids = set({{words: "10007"}});
      out.state = set({{words: "", state: "missing"}});
      out.failed = set({{state: "", check: "{relu}", mark: "f"}});
      form.reset();
      return out;"""
    )
    out, console = act(tmp_path, text_of(simulated), steps)
    assert console == []

    def ids(wanted):
        return [s.entry.student for s in simulated.standings if wanted(s)]

    berg = ids(lambda s: "Émile" in s.entry.name and "Berg" in s.entry.name)
    assert out["words"]["ids"] == berg and len(berg) > 1
    assert out["words"]["said"] == f"{len(berg)} of 300 students shown."
    assert out["ids"]["ids"] == ["10007"]
    assert out["state"]["ids"] == ids(lambda s: s.state == "missing")
    failed = ids(lambda s: "relu" in s.outcomes and s.outcomes["relu"].status == "fail")
    assert out["failed"]["ids"] == failed


@needs_chromium
@pytest.mark.parametrize("width", [390, 780, 1160])
def test_the_page_fits_a_phone_and_a_desk_and_asks_for_nothing(simulated, tmp_path, width):
    steps = """
      const wide = [...page.querySelectorAll("main *")].filter(e => !e.closest("svg")
        && e.getBoundingClientRect().right > view.innerWidth + 0.5);
      return {overflow: page.documentElement.scrollWidth - page.documentElement.clientWidth,
        wide: wide.map(e => e.tagName + "." + e.className), width: view.innerWidth,
        requests: view.performance.getEntriesByType("resource").length,
        inner: [...page.querySelectorAll("main *")].filter(
          e => ["auto", "scroll"].includes(view.getComputedStyle(e).overflowY)).length,
        labels: ["#students td", "#items td"].map(
          e => view.getComputedStyle(page.querySelector(e), "::before").content),
        small: Math.min(...[...page.querySelectorAll("p, td, th, li, label")].map(
          e => parseFloat(view.getComputedStyle(e).fontSize)))}"""
    seen, console = act(tmp_path, text_of(simulated), steps, width)
    assert (seen["width"], seen["overflow"], seen["wide"]) == (width, 0, [])
    assert seen["requests"] == seen["inner"] == 0 and seen["small"] >= 12 and console == []
    labels = ['"Score"' if width < 768 else "none", '"No."' if width < 1152 else "none"]
    assert seen["labels"] == labels


@needs_chromium
def test_the_policy_stops_any_other_script_and_the_tables_still_stand(simulated, tmp_path):
    digest = re.search(r"'sha256-[^']*'", text_of(simulated))[0]
    text = text_of(simulated).replace(digest, "'sha256-" + "A" * 43 + "='", 1)
    steps = """return {rows: page.querySelectorAll("#students tbody tr").length,
      hidden: page.getElementById("filter").hidden,
      buttons: page.querySelectorAll("th button").length}"""
    seen, console = act(tmp_path, text, steps)
    assert (seen["rows"], seen["hidden"], seen["buttons"]) == (300, True, 0)
    assert any("Content Security Policy" in line for line in console)


@needs_chromium
def test_the_page_opens_from_a_file_and_prints(simulated, tmp_path):
    path = tmp_path / "class.html"
    path.write_text(text_of(simulated), encoding="utf-8")
    dom, console = visit(tmp_path, path.as_uri())
    assert "300 of 300 students shown." in dom and console == []
    chromium(tmp_path, f"--print-to-pdf={tmp_path / 'p.pdf'}", path.as_uri())
    assert (tmp_path / "p.pdf").read_bytes().startswith(b"%PDF")


@needs_chromium
def test_the_page_opens_sorts_and_filters_at_any_size(simulated, many, tmp_path):
    steps = (
        STEPS
        + """out.sort = timed(() => heads[1].querySelector("button").click());
      out.filter = timed(() => { set({words: "berg"}); }); out.left = rows().length; return out;"""
    )
    for results in (simulated, many):
        text, students = text_of(results), len(results.standings)
        out, console = act(tmp_path, text, steps)
        assert out["all"] == students and 0 < out["left"] < students and console == []
        print(f"{students} students: {len(text.encode()) / 1e6:.2f} MB, opened in "
              f"{out['opened']:.0f} ms, sorted in {out['sort']:.0f} ms, filtered in "
              f"{out['filter']:.0f} ms")  # fmt: skip
