"""Two gradings of a class: who changes and why, and taking the new one over."""

import csv
import io
import json
import shutil
from dataclasses import replace

import pytest

from grader.base.files import write_whole
from grader.batch import regrade
from grader.batch.batch import lock
from grader.batch.regrade import (
    DOWN,
    EQUAL,
    GAINED,
    LOST,
    SAME,
    UP,
    RegradeError,
    accept,
    compare,
    to_csv,
    to_json,
    totals,
)
from grader.classroom.store import ERROR, GRADED, MISSING, read_classbook
from grader.cli.main import main
from simulated import simulate


@pytest.fixture(scope="module")
def simulated_class(tmp_path_factory):
    """12 students who all have a report. Tests take copies."""
    book = simulate(tmp_path_factory.mktemp("class") / "results", 30, seed=5)
    book.entries = [s.entry for s in book.standings() if s.state == GRADED][:12]
    book.write()
    return book.path


@pytest.fixture
def old(simulated_class, tmp_path):
    shutil.copytree(simulated_class, tmp_path / "old")
    return read_classbook(tmp_path / "old")


@pytest.fixture
def new(simulated_class, tmp_path):
    """The same class, graded again by another seed, with the same results."""
    shutil.copytree(simulated_class, tmp_path / "new")
    book = read_classbook(tmp_path / "new")
    for place in range(len(book.entries)):
        edit(book, place, lambda raw: raw.update(seed="5eed", started="2026-11-01T10:00:00+00:00"))
    return book


def edit(book, place, change):
    """Changes a stored report; returns its student."""
    path = book.report_path(book.entries[place])
    raw = json.loads(path.read_bytes())
    change(raw)
    write_whole(path, json.dumps(raw))
    return book.entries[place].student


def set_check(book, place, check, **values):
    """Sets how a check of a report ended."""

    def change(raw):
        next(r for r in raw["results"] if r["check"] == check).update(values)

    return edit(book, place, change)


def passes(book, place, check="array_set"):
    return set_check(book, place, check, status="pass", score=1.0, message="")


def fails(book, place, check="array_set", message="0 of 1 right"):
    return set_check(book, place, check, status="fail", score=0.0, message=message)


def drop(book, place):
    """Takes away a report and what was handed in."""
    entry = book.entries[place]
    book.report_path(entry).unlink()
    book.entries[place] = replace(entry, source="")
    book.write()
    return entry.student


def by_student(old, new):
    return {change.student: change for change in compare(old, new)}


def report(book, student):
    entry = next(each for each in book.entries if each.student == student)
    return json.loads(book.report_path(entry).read_bytes())


def kept(book, student):
    entry = next(each for each in book.entries if each.student == student)
    return sorted(path.name for path in book.folder(entry).glob("report-before-*"))


# --- comparing ----------------------------------------------------------------------------------


def test_another_seed_is_no_change(old, new):
    set_check(new, 0, "build", message="other figures", seconds=9.5)
    changes = compare(old, new)
    assert {change.kind for change in changes} == {SAME}
    assert all("seed" in change.differs for change in changes)
    assert totals(changes).changed == 0


def test_a_check_that_ends_otherwise_is_told_with_its_message(old, new):
    fails(old, 0)
    passes(new, 0)
    passes(old, 1)
    student = fails(new, 1, message="relu(1): wrong")
    changes = compare(old, new)
    assert [change.kind for change in changes[:3]] == [UP, DOWN, SAME]
    assert changes[0].delta == 1
    change = changes[1]
    assert (change.student, change.delta) == (student, -1)
    (check,) = change.checks
    assert (check.check, check.status_before, check.status_after) == ("array_set", "pass", "fail")
    assert (check.score_before, check.score_after) == (1, 0)
    assert check.message == "relu(1): wrong"


def test_the_same_score_by_other_checks_is_a_change(old, new):
    passes(old, 0)
    fails(old, 0, "broadcast_to")
    fails(new, 0)
    student = passes(new, 0, "broadcast_to")
    change = by_student(old, new)[student]
    assert (change.kind, change.delta, len(change.checks)) == (EQUAL, 0, 2)


def test_other_points_possible_are_a_change(old, new):
    student = set_check(new, 0, "mnist_gpu", points=9.0)
    change = by_student(old, new)[student]
    assert change.kind == EQUAL
    assert change.points_after > change.points_before


def test_scores_that_come_and_go_are_no_ups_and_downs(old, new):
    gained, lost = drop(old, 0), drop(new, 1)
    failed = set_check(new, 2, "build", status="error", score=0.0, message="no space left")
    changes = by_student(old, new)
    assert (changes[gained].kind, changes[gained].state_before) == (GAINED, MISSING)
    assert (changes[lost].kind, changes[lost].state_after) == (LOST, MISSING)
    assert (changes[failed].kind, changes[failed].state_after) == (LOST, ERROR)
    assert changes[lost].delta is None
    found = totals(changes.values())
    assert (found.counts[GAINED], found.counts[LOST], found.mean) == (1, 2, 0)


def test_students_of_one_grading_alone_are_there(old, new):
    gone, came = new.entries.pop(0).student, old.entries.pop(1).student
    changes = compare(old, new)
    assert changes[0].student == gone
    assert (changes[0].kind, changes[0].state_after) == (LOST, "")
    assert changes[-1].student == came
    assert (changes[-1].kind, changes[-1].state_before) == (GAINED, "")


@pytest.mark.parametrize(
    ("field", "name", "value"),
    [("rubric", "rubric", "cafe"), ("grader_version", "grader version", "9.9"),
     ("sha256", "submission", "0" * 64), ("device", "device", "cuda")],
)  # fmt: skip
def test_what_may_be_the_reason_is_told(old, new, field, name, value):
    student = edit(new, 0, lambda raw: raw.update({field: value}))
    change = by_student(old, new)[student]
    before, after = change.differs[name]
    assert before != after
    assert after.endswith(value)
    assert change.kind == (EQUAL if name == "submission" else SAME)


def test_totals_count_and_average(old, new):
    for place in range(3):
        fails(old, place)
        passes(new, place)
    passes(old, 3, "mnist_gpu")
    fails(new, 3, "mnist_gpu")
    set_check(old, 3, "mnist_gpu", score=2.0)
    found = totals(compare(old, new))
    assert (found.counts[UP], found.counts[DOWN], found.counts[SAME]) == (3, 1, 8)
    assert found.mean == pytest.approx((3 - 2) / 12)
    assert totals([]).mean is None


def test_a_damaged_report_is_no_score(old, new):
    old.report_path(old.entries[0]).write_text("{")
    change = compare(old, new)[0]
    assert (change.kind, change.state_before) == (GAINED, ERROR)
    assert "is not JSON" in change.differs["problem"][0]


def test_the_csv_has_a_row_a_check_and_no_formulas(old, new):
    passes(old, 0)
    fails(new, 0, message="=HYPERLINK()")
    passes(old, 1)
    fails(new, 1)
    passes(old, 1, "broadcast_to")
    fails(new, 1, "broadcast_to")
    drop(new, 2)
    rows = list(csv.DictReader(io.StringIO(to_csv(compare(old, new)), newline="")))
    assert [row["check"] for row in rows] == ["array_set", "array_set", "broadcast_to", ""]
    assert rows[0]["message"] == "'=HYPERLINK()"
    assert (rows[0]["check score before"], rows[0]["check score after"]) == ("1.0", "0.0")
    assert (rows[3]["change"], rows[3]["score after"]) == (LOST, "")
    assert rows[3]["score before"]


def test_the_json_has_who_changes_and_the_totals(old, new):
    fails(old, 0)
    student = passes(new, 0)
    raw = json.loads(to_json(compare(old, new)))
    assert raw["counts"][UP] == 1
    assert raw["mean_change"] == pytest.approx(1 / 12)
    (change,) = raw["changes"]
    assert (change["student"], change["delta"]) == (student, 1)
    assert change["checks"][0]["status_after"] == "pass"


# --- taking over --------------------------------------------------------------------------------


def test_accepting_replaces_who_changes_and_keeps_the_old_report(old, new):
    fails(old, 0)
    student = passes(new, 0)
    before, now = report(old, student), report(new, student)
    done = accept(old, new, compare(old, new))
    assert (done.replaced, done.kept) == ([student], {})
    assert report(old, student) == now
    (name,) = kept(old, student)
    assert name == "report-before-2026-10-01T230000Z.json"
    assert json.loads((old.folder(old.entries[0]) / name).read_bytes()) == before
    assert totals(compare(read_classbook(old.path), new)).changed == 0
    assert not any(kept(old, entry.student) for entry in old.entries[1:])


def test_only_the_named_are_replaced(old, new):
    students = []
    for place in range(2):
        fails(old, place)
        students.append(passes(new, place))
    changes = compare(old, new)
    assert accept(old, new, changes, only=[students[1]]).replaced == [students[1]]
    assert report(old, students[0])["seed"] != "5eed"
    same = old.entries[5].student
    assert accept(old, new, changes, only=[same]).replaced == [same]
    with pytest.raises(RegradeError, match="nobody in the class is 'x'"):
        accept(old, new, changes, only=["x"])


def test_a_score_never_goes_away(old, new):
    lost = drop(new, 0)
    failed = set_check(new, 1, "build", status="error", score=0.0, message="no space left")
    new.entries.pop(2)
    gone = old.entries[2].student
    done = accept(old, new, compare(old, new))
    assert done.replaced == []
    assert done.kept == {
        lost: "missing in the new results",
        failed: "error in the new results",
        gone: "not in the new results",
    }
    assert all(standing.state == GRADED for standing in old.standings())


def test_a_late_submission_brings_its_time_along(old, new):
    student = drop(old, 0)
    entry = replace(new.entries[0], source="new/work.zip", submitted="2026-12-01T00:00:00+00:00",
                    late=True, attempt=3, folder=new.entries[0].folder)  # fmt: skip
    new.entries[0] = entry
    accept(old, new, compare(old, new))
    book = read_classbook(old.path)
    assert book.entries[0] == entry
    assert book.standing(book.entries[0]).state == GRADED
    assert kept(book, student) == []


def test_another_rubric_moves_the_whole_class_and_then_its_head(old, new):
    new.rubric, new.points = "cafe", 26.0
    for place in range(len(new.entries)):
        edit(new, place, lambda raw: raw.update(rubric="cafe"))
    changes = compare(old, new)
    assert totals(changes).changed == 0
    first = old.entries[0].student
    accept(old, new, changes, only=[first])
    assert read_classbook(old.path).rubric != "cafe"
    done = accept(old, new, compare(old, new))
    assert len(done.replaced) == len(old.entries) - 1
    book = read_classbook(old.path)
    assert (book.rubric, book.points) == ("cafe", 26.0)


def test_two_old_reports_of_one_time_are_both_kept(old, new):
    fails(old, 0)
    student = passes(new, 0)
    accept(old, new, compare(old, new))
    edit(old, 0, lambda raw: raw.update(started="2026-10-01T23:00:00+00:00"))
    fails(new, 0)
    accept(old, new, compare(old, new))
    assert len(kept(old, student)) == 2
    states = [json.loads((old.folder(old.entries[0]) / name).read_bytes())["seed"]
              for name in kept(old, student)]  # fmt: skip
    assert len(set(states)) == 2


@pytest.mark.parametrize("dies_at", [1, 2, 3])
def test_an_interruption_loses_nothing_and_is_taken_up(old, new, monkeypatch, dies_at):
    """Three files are written: class.json, the old report aside, the new report."""
    fails(old, 0)
    student = passes(new, 0)
    new.entries[0] = replace(new.entries[0], submitted="2026-12-01T00:00:00+00:00")
    changes = compare(old, new)
    before, now = report(old, student), report(new, student)
    written = []

    def dying(path, content):
        written.append(path)
        if len(written) == dies_at:
            raise KeyboardInterrupt
        write_whole(path, content)

    monkeypatch.setattr(regrade, "write_whole", dying)
    monkeypatch.setattr("grader.classroom.store.write_whole", dying)
    with pytest.raises(KeyboardInterrupt):
        accept(old, new, changes)
    monkeypatch.undo()
    book = read_classbook(old.path)
    found = [report(book, student)]
    folder = book.folder(book.entries[0])
    found += [json.loads((folder / name).read_bytes()) for name in kept(book, student)]
    assert before in found
    accept(book, new, compare(book, new))
    assert report(book, student) == now
    assert [json.loads((folder / name).read_bytes()) for name in kept(book, student)] == [before]
    assert read_classbook(old.path).entries[0].submitted == "2026-12-01T00:00:00+00:00"


# --- the command --------------------------------------------------------------------------------


def test_nothing_is_replaced_without_accept(old, new, tmp_path, capsys):
    fails(old, 0)
    student = passes(new, 0)
    files = {p: p.read_bytes() for p in old.path.rglob("*") if p.is_file()}
    arguments = ["--diff", "--csv", str(tmp_path / "c.csv"), "--json", str(tmp_path / "c.json")]
    assert main(["regrade", str(old.path), str(new.path), *arguments]) == 1
    said = capsys.readouterr().out
    assert student in said
    assert "array_set fail -> pass, 0 -> 1" in said
    assert "12 students: 1 up, 11 the same" in said
    assert {p: p.read_bytes() for p in old.path.rglob("*") if p.is_file()} == files
    assert (tmp_path / "c.csv").read_text().startswith("student,name,change,")
    assert json.loads((tmp_path / "c.json").read_bytes())["counts"][UP] == 1


def test_diff_shows_every_check_and_messages_in_full(old, new, capsys):
    names = [r["check"] for r in report(old, old.entries[0].student)["results"]][1:13]
    for name in names:
        passes(old, 0, name)
        fails(new, 0, name, f"{'0 of 1 right, ' * 15}{name}, and so on to the end")
    words = ["regrade", str(old.path), str(new.path)]
    assert main(words) == 1
    short = " ".join(capsys.readouterr().out.split())
    assert "and 4 checks more; hint: --diff" in short
    assert "so on to the end" not in short
    assert main([*words, "--diff"]) == 1
    whole = "".join(capsys.readouterr().out.split())
    assert all(f"{name},andsoontotheend" in whole for name in names)
    assert "checksmore" not in whole


def test_accept_shows_the_counts_and_then_replaces(old, new, capsys):
    fails(old, 0)
    passes(new, 0)
    assert main(["regrade", str(old.path), str(new.path), "--accept"]) == 0
    said = capsys.readouterr().out
    assert said.index("1 up") < said.index("1 reports replaced")
    assert main(["regrade", str(old.path), str(new.path)]) == 0
    assert "12 students: 12 the same" in capsys.readouterr().out


def test_nothing_is_replaced_under_a_batch_that_runs(old, new, capsys):
    fails(old, 0)
    student = passes(new, 0)
    with lock(old.path):
        assert main(["regrade", str(old.path), str(new.path), "--accept"]) == 2
        assert "another run is writing" in capsys.readouterr().err
        assert main(["regrade", str(old.path), str(new.path)]) == 1
    assert kept(old, student) == []


def test_what_is_not_taken_over_is_told(old, new, capsys):
    student = drop(new, 0)
    assert main(["regrade", str(old.path), str(new.path), "--accept"]) == 1
    assert f"{student} stays: missing in the new results" in capsys.readouterr().out


def test_text_of_submissions_is_no_markup(old, new, capsys):
    passes(old, 0)
    fails(new, 0, message="[bold]x[/] \x1b[31mred")
    old.entries[0] = new.entries[0] = replace(old.entries[0], name="[red]Bo[/red]\u202e")
    new.write()
    main(["regrade", str(old.path), str(new.path)])
    said = " ".join(capsys.readouterr().out.split())
    assert "[bold]x[/] red" in said
    assert "[red]Bo[/red]\\u202e" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["old", "old"], "the same folder"), (["old", "none"], "holds no results"),
     (["old", "new", "--only", "x"], "--only needs --accept"),
     (["old", "new", "--accept", "--only", "x"], "nobody in the class is 'x'")],
)  # fmt: skip
def test_what_can_not_be_is_refused_in_words(old, new, monkeypatch, capsys, arguments, said):
    monkeypatch.chdir(old.path.parent)
    assert main(["regrade", *arguments]) == 2
    assert said in capsys.readouterr().err
