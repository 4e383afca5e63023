"""The class page in a browser, its links, CSV files and leaderboard, with hostile students."""

import csv
import dataclasses
import io
import json
import re
from pathlib import Path
from urllib.parse import urljoin, urlsplit
from urllib.request import url2pathname

import pytest

import sample_report
from browser import act, chromium, needs_chromium, visit
from grader.classbook import Classbook, Entry
from grader.classfiles import csv_text, write_csv
from grader.classpage import (
    ClassPageError,
    class_page,
    fixed,
    gather,
    percent,
    student_page,
    write_student_pages,
)
from grader.cli import main
from grader.leaderboard import places, pseudonyms, write_leaderboard
from sample_report import HOSTILE, result
from simulated import simulate
from test_html import Page

SALT = "5ec4e7" * 4
#: Names of folders that break links which are put together carelessly.
FOLDERS = (
    "Иван-明-é", "it's \"her\" <b>", "100%25 & more", "a b#c?d=e", "javascript:alert(1)",
    "..data", "x;y,z+=w",
)  # fmt: skip


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


def text_of(results):
    return class_page(results, results.book.path / "class.html")


def book_of(folder, reports, **more):
    """Results of a class from (entry, report or None)."""
    book = Classbook(
        folder, "A <class>", "default", "0" * 16, 4.0, "emulated", "auto", "inbox", "2026-01-02",
        [entry for entry, _ in reports], **more,
    )  # fmt: skip
    book.write()
    for entry, report in reports:
        if report is not None:
            report.write(book.report_path(entry))
    return book


def hostile_book(folder):
    """A class in which every text that a student may choose is hostile."""
    rows = [
        result("relu", "fail", message=HOSTILE, findings=[{"title": HOSTILE}]),
        result("softmax", "fail", message=f"=cmd()|{HOSTILE}"),
        result("array_set", seconds=0.5),
        result(HOSTILE, "fail", message="wrong"),
    ]
    reports = [
        (
            Entry(f"{HOSTILE}{number}", name, HOSTILE + str(number), HOSTILE, HOSTILE, HOSTILE,
                  HOSTILE, HOSTILE, True, 1, [HOSTILE]),
            sample_report.report(rows, submission=HOSTILE),
        )
        for number, name in enumerate(FOLDERS)
    ]  # fmt: skip
    unreadable = sample_report.report([], problem=HOSTILE)
    broken = sample_report.report([result("relu", "error", message=HOSTILE)])
    reports += [
        (Entry("-1+1", "unreadable", "=1+1", source="x"), unreadable),
        (Entry("@SUM(A1)", "broken", "\t=1", source="x"), broken),
    ]
    return book_of(folder, reports, notes=[HOSTILE])


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
    assert len(page.rows["items"]) == 28
    counts = simulated.figures.states
    assert f"300 students: {counts['graded']} graded" in page.text
    assert "Mean " in page.text and "Cronbach's alpha 0." in page.text


def test_errors_of_the_grader_stand_before_everything_else(simulated):
    page = text_of(simulated)
    assert simulated.figures.states["error"] > 0
    assert page.index("no space left on device") < page.index('id="scores"')
    first = page.index("The grader itself failed")
    assert first < page.index('<h2 id="scores"') and first < page.index("<table")


def test_marks_of_a_strip_are_told_in_words(simulated):
    standing = next(s for s in simulated.standings if s.state == "graded" and s.score < 20)
    failed = [name for name, o in standing.outcomes.items() if o.status == "fail"]
    title = f"failed: {', '.join(failed)}"
    assert re.search(rf"<title>\d+ of 27 passed; {title}(;|<)", text_of(simulated))


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
    assert "is no JSON" in Page(text_of(results)).text


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
@pytest.mark.parametrize("width", [390, 1200])
def test_the_page_fits_a_phone_and_a_desk_and_asks_for_nothing(simulated, tmp_path, width):
    steps = """
      const wide = [...page.querySelectorAll("main *")].filter(e => !e.closest("svg, table")
        && e.getBoundingClientRect().right > view.innerWidth + 0.5);
      return {overflow: page.documentElement.scrollWidth - page.documentElement.clientWidth,
        wide: wide.map(e => e.tagName + "." + e.className), width: view.innerWidth,
        requests: view.performance.getEntriesByType("resource").length,
        small: Math.min(...[...page.querySelectorAll("p, td, th, li, label")].map(
          e => parseFloat(view.getComputedStyle(e).fontSize)))}"""
    seen, console = act(tmp_path, text_of(simulated), steps, width)
    assert (seen["width"], seen["overflow"], seen["wide"]) == (width, 0, [])
    assert seen["requests"] == 0 and seen["small"] >= 12 and console == []


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


# --- CSV ----------------------------------------------------------------------------------------


def read(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_csv_files_say_what_the_page_says(simulated, tmp_path):
    names = [path.name for path in write_csv(simulated, tmp_path)]
    assert names == ["students.csv", "items.csv", "failures.csv"]
    students = read(tmp_path / "students.csv")
    assert [row["student"] for row in students] == [e.student for e in simulated.book.entries]
    for row, standing in zip(students, simulated.standings, strict=True):
        assert row["state"] == standing.state
        final = standing.state in ("graded", "unreadable")
        assert row["score"] == (f"{standing.score:g}" if final else "")
        assert row["relu"] == (standing.outcomes["relu"].status if standing.outcomes else "")
    items = {row["check"]: row for row in read(tmp_path / "items.csv")}
    relu = next(i for i in simulated.figures.items if i.check == "relu")
    assert items["relu"]["passed"] == str(relu.passed) and items["relu"]["task"] == "2.11"
    assert float(items["relu"]["correlation"]) == pytest.approx(relu.correlation, abs=1e-6)
    assert items["build"]["correlation"] == "" and items["build"]["flags"] == "everybody"
    assert float(items["speed_softmax"]["speed_largest"]) > 0 == len(items["relu"]["speed_count"])
    failures = read(tmp_path / "failures.csv")
    counts = [int(row["students"]) for row in failures]
    assert counts == sorted(counts, reverse=True)
    assert all(len(row["who"].split("; ")) == int(row["students"]) for row in failures)


def test_the_csv_files_are_the_same_every_time(simulated, tmp_path):
    first, second = (
        [path.read_bytes() for path in write_csv(gather(simulated.book), tmp_path / name)]
        for name in "ab"
    )
    assert first == second


def test_cells_are_quoted_and_never_formulas():
    values = ["a,b", 'say "hi"', "two\nlines", "=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1",
              " =1", "＝1", "a=b", "", None, 1, -1.5, -0.0, 0.1 + 0.2, 1e7]  # fmt: skip
    text = csv_text([values, ["next"]])
    assert text.startswith('"a,b","say ""hi""","two\nlines",\'=1+1,') and text.endswith("next\r\n")
    first, second = csv.reader(io.StringIO(text, newline=""))
    assert first[:3] == values[:3] and second == ["next"]
    assert first[3:7] == ["'=1+1", "'+1", "'-1", "'@SUM(A1)"]
    assert all(cell.startswith(("'", "\\x0d")) for cell in first[7:11])
    assert first[11:] == ["a=b", "", "", "1", "-1.5", "0", "0.3", "10000000"]


def test_hostile_text_is_inert_in_csv(tmp_path):
    for path in write_csv(gather(hostile_book(tmp_path / "class")), tmp_path):
        with path.open(encoding="utf-8", newline="") as file:
            cells = [cell for row in csv.reader(file) for cell in row]
        for cell in cells:
            number = re.fullmatch(r"-?\d+(\.\d+)?", cell)
            assert number or not cell.lstrip(" ").startswith(("=", "+", "-", "@", "\t", "\r")), cell
            assert not any(ord(c) < 32 and c not in "\n\t" for c in cell)


# --- leaderboard --------------------------------------------------------------------------------


def test_pseudonyms_follow_from_the_salt_alone():
    students = [f"{number}" for number in range(3000)]
    first = pseudonyms(students, SALT)
    assert first == pseudonyms(reversed(students), SALT)
    assert len(set(first.values())) == 3000
    other = pseudonyms(students, SALT + "x")
    assert not set(first.values()) & set(other.values())
    # The HMAC of RFC 2104, computed by another tool: printf 'leaderboard\0s1' |
    # openssl dgst -sha256 -hmac 5ec4e75ec4e75ec4e75ec4e7
    assert pseudonyms(["s1"], SALT) == {"s1": "heron-ba7c13bc"}


@pytest.mark.parametrize("salt", ["", "short", "x" * 15])
def test_a_salt_that_could_be_guessed_is_refused(salt):
    with pytest.raises(ClassPageError, match="hint: make one"):
        pseudonyms(["s1"], salt)


def test_the_leaderboard_names_nobody(simulated, tmp_path):
    page = tmp_path / "board.html"
    count = write_leaderboard(simulated.book, simulated.standings, page, SALT)
    assert count == simulated.figures.states["graded"]
    for path in (page, tmp_path / "board.json"):
        text = path.read_text(encoding="utf-8")
        for entry in simulated.book.entries:
            for secret in (entry.name, entry.login, entry.email, entry.folder):
                assert secret not in text, path
            assert not re.search(rf"\b{entry.student}\b", text), path
        assert SALT not in text and "section" not in text
    raw = json.loads((tmp_path / "board.json").read_text())
    scores = [place["score"] for place in raw["places"]]
    assert scores == sorted(scores, reverse=True) and len(scores) == count
    assert Page(page.read_text()).tags.count("tr") == count + 1


def test_ranks_are_shared_and_equals_stand_by_pseudonym(simulated):
    names = pseudonyms([e.student for e in simulated.book.entries], SALT)
    board = places(reversed(simulated.standings), names)
    assert board == places(simulated.standings, names)
    for place in board:
        assert place.rank == 1 + sum(other.score > place.score for other in board)


def test_only_who_joined_is_on_the_leaderboard(simulated, tmp_path):
    graded = [s.entry.student for s in simulated.standings if s.state == "graded"]
    page = tmp_path / "board.html"
    joined = {*graded[:5], "nobody"}
    assert write_leaderboard(simulated.book, simulated.standings, page, SALT, joined) == 5
    raw = json.loads((tmp_path / "board.json").read_text())
    assert {p["pseudonym"] for p in raw["places"]} == set(pseudonyms(graded[:5], SALT).values())
    with pytest.raises(ClassPageError, match="none of those who joined"):
        write_leaderboard(simulated.book, simulated.standings, page, SALT, {"nobody"})


# --- the command --------------------------------------------------------------------------------


def test_the_command_writes_what_it_is_asked_for(tmp_path, capsys):
    book = simulate(tmp_path / "results", 20, seed=4)
    graded = next(s.entry for s in book.standings() if s.state == "graded")
    (tmp_path / "salt").write_text(SALT + "\n")
    (tmp_path / "ids").write_text(f"{graded.student}\n\n")
    arguments = ["class", book.path, "--students", "--csv", tmp_path / "figures",
                 "--leaderboard", tmp_path / "board.html", "--salt", f"@{tmp_path / 'salt'}",
                 "--joined", tmp_path / "ids"]  # fmt: skip
    assert main([str(argument) for argument in arguments]) == 0
    assert "20 students: " in capsys.readouterr().out
    page = (book.path / "class.html").read_text(encoding="utf-8")
    assert f"./students/{graded.folder.partition('-')[0]}"[:11] in page
    assert student_page(book, graded).is_file()
    who = read(tmp_path / "figures/pseudonyms.csv")
    assert [row["student"] for row in who] == [graded.student]
    assert who[0]["pseudonym"] in (tmp_path / "board.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["missing"], "holds no results of a class"),
        (["results", "--html", "results"], "is a folder"),
        (["results", "--csv", "results/class.json"], "is no folder"),
        (["results", "--leaderboard", "b.html"], "go together"),
        (["results", "--salt", SALT], "go together"),
        (["results", "--leaderboard", "b.html", "--salt", "x"], "fewer than 16"),
        (["results", "--leaderboard", "b.html", "--salt", "@gone"], "--salt @gone"),
        (["results", "--leaderboard", "b.json", "--salt", SALT], "end it in .html"),
        (["results", "--leaderboard", "results/class.html", "--salt", SALT], "are one file"),
        (["results", "--joined", "x"], "goes with --leaderboard"),
        (["results", "--leaderboard", "b.html", "--salt", SALT, "--joined", "ids"], "'who'"),
    ],
)
def test_bad_usage_is_told_and_writes_nothing(tmp_path, monkeypatch, capsys, arguments, words):
    simulate(tmp_path / "results", 3, seed=5)
    (tmp_path / "ids").write_text("who\n")
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    assert main(["class", *arguments]) == 2
    assert words in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before


def test_what_has_no_report_is_never_a_zero(tmp_path):
    book = simulate(tmp_path / "results", 60, seed=6)
    results = gather(book)
    without = [s for s in results.standings if s.state in ("missing", "pending", "error")]
    assert {"missing", "pending"} <= {s.state for s in without}
    less = dataclasses.replace(
        book, entries=[s.entry for s in results.standings if s not in without]
    )
    assert gather(less).figures.scores == results.figures.scores
    assert gather(less).figures.alpha == results.figures.alpha
