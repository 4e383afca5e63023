"""The figures of a class as CSV, the leaderboard, and the command that writes them."""

import csv
import io
import json
import re
from dataclasses import replace
from urllib.parse import quote

import pytest

from grader.classroom.leaderboard import places, pseudonyms, write_leaderboard
from grader.classroom.page import ClassPageError, gather, student_page
from grader.classroom.store import CheckOutcome
from grader.classroom.tables import csv_text, write_csv
from grader.cli.main import main
from html_page import Page
from sample_class import hostile_book
from simulated import simulate

SALT = "5ec4e7" * 4


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """300 students."""
    return gather(simulate(tmp_path_factory.mktemp("class") / "results", 300, seed=1))


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
    assert text.startswith('"a,b","say ""hi""",two lines,\'=1+1,') and text.endswith("next\r\n")
    first, second = csv.reader(io.StringIO(text, newline=""))
    assert first[:3] == [*values[:2], "two lines"] and second == ["next"]
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
    count = write_leaderboard(simulated.book, simulated.standings, page, SALT, None)
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
        better = [(o.score, o.speed) > (place.score, place.speed) for o in board]
        assert place.rank == 1 + sum(better)


def test_speed_decides_between_equal_scores(simulated):
    first, second, third = [s for s in simulated.standings if s.state == "graded"][:3]
    names = {s.entry.student: s.entry.student for s in (first, second, third)}
    ratios = [(0.5, 0.5), (1.0, 0.81), (0.25, 1.0)]
    chosen = [
        replace(s, score=9.0, outcomes={
            name: CheckOutcome("pass", 1, 1.0, ratio=ratio)
            for name, ratio in zip("ab", pair, strict=True)
        })
        for s, pair in zip((first, second, third), ratios, strict=True)
    ]  # fmt: skip
    board = places(chosen, names)
    assert [(place.rank, place.speed) for place in board] == [(1, 0.9), (2, 0.5), (2, 0.5)]
    assert board[0].pseudonym == second.entry.student


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
    assert f'href="./students/{quote(graded.folder)}/report.html"' in page
    assert student_page(book, graded).is_file()
    who = read(tmp_path / "figures/pseudonyms.csv")
    assert [row["student"] for row in who] == [graded.student]
    assert who[0]["pseudonym"] in (tmp_path / "board.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["missing"], "holds no results of a class"),
        (["results", "--html", "results"], "is a folder"),
        (["results", "--csv", "results/class.json"], "is not a folder"),
        (["results", "--leaderboard", "b.html", "--joined", "all"], "--leaderboard needs --salt"),
        (["results", "--salt", SALT], "--leaderboard needs --salt"),
        (["results", "--leaderboard", "b.html", "--salt", "x", "--joined", "all"], "fewer than 16"),
        (
            ["results", "--leaderboard", "b.html", "--salt", "@gone", "--joined", "all"],
            "--salt @gone",
        ),
        (
            ["results", "--leaderboard", "b.json", "--salt", SALT, "--joined", "all"],
            "end it in .html",
        ),
        (
            ["results", "--leaderboard", "results/class.html", "--salt", SALT, "--joined", "all"],
            "are one file",
        ),
        (["results", "--leaderboard", "b.html", "--salt", SALT], "hint: --joined FILE"),
        (["results", "--html", "results/class.json"], "would be lost"),
        (["results", "--html", "results/journal.jsonl"], "would be lost"),
        (["results", "--html", "x/../results/students/a/report.json"], "would be lost"),
        (["results", "--csv", "results/students"], "would be lost"),
        (
            [
                "results",
                "--leaderboard",
                "b.html",
                "--salt",
                SALT,
                "--html",
                "./ids",
                "--joined",
                "ids",
            ],
            "would be lost",
        ),
        (["results", "--joined", "x"], "needs --leaderboard"),
        (["results", "--leaderboard", "b.html", "--salt", SALT, "--joined", "ids"], "'who'"),
    ],
)
def test_bad_usage_is_told_and_writes_nothing(tmp_path, monkeypatch, capsys, arguments, words):
    simulate(tmp_path / "results", 3, seed=5)
    (tmp_path / "ids").write_text("who\n")
    monkeypatch.chdir(tmp_path)
    before = {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")}
    assert main(["class", *arguments]) == 2
    assert words in capsys.readouterr().err
    assert {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")} == before


@pytest.mark.parametrize("board", ["results/class.html", "results/journal.html"])
def test_no_output_takes_the_place_of_the_results(tmp_path, monkeypatch, capsys, board):
    """The board's JSON file would be RESULTS/class.json."""
    simulate(tmp_path / "results", 3, seed=5)
    monkeypatch.chdir(tmp_path)
    own = (tmp_path / "results/class.json").read_bytes()
    code = main(["class", "results", "--html", "c.html", "--leaderboard", board, "--salt", SALT,
                 "--joined", "all"])  # fmt: skip
    assert (tmp_path / "results/class.json").read_bytes() == own
    lost = board.endswith("class.html")
    assert code == (2 if lost else 0)
    assert ("would be lost" in capsys.readouterr().err) == lost


@pytest.mark.parametrize("arguments", [
    ["export", "results", "--csv", "results/class.json"],
    ["export", "results", "--long", "results/students/x.csv"],
    ["regrade", "results", "new", "--json", "results/class.json"],
    ["regrade", "results", "new", "--csv", "results/journal.jsonl"],
])  # fmt: skip
def test_nor_does_another_command_s(tmp_path, monkeypatch, capsys, arguments):
    simulate(tmp_path / "results", 3, seed=5)
    monkeypatch.chdir(tmp_path)
    before = {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")}
    assert main(arguments) == 2
    assert "would be lost" in capsys.readouterr().err
    assert {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")} == before
