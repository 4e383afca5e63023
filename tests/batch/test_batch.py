"""A class is graded once, whatever happens on the way, and nobody gets a zero by accident."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

import catalogue
from dask_cluster import Cluster
from grader.batch import batch, job
from grader.batch.batch import Batch, BatchError, Running
from grader.batch.engine import Engine, local
from grader.classroom.store import ERROR, GRADED, MISSING, PENDING, UNREADABLE, read_classbook
from grader.cli import main
from grader.course.rubric import load_rubric
from grader.grading.prebuilt import GraderError
from grader.sandbox import isolation

KIT = Path(__file__).resolve().parents[2]

#: What needs no kernels, so that a submission takes a second.
RUBRIC = """
base = "default"
title = "The first part"
description = "For tests of grading a class."
[parts]
1 = "autodiff"
[[check]]
name = "topological_order"
task = "1.1"
points = 1
[[check]]
name = "gradient_add_multiply"
task = "1.2"
points = 2
"""


@pytest.fixture(scope="module")
def rubric_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("rubric") / "first.toml"
    text = RUBRIC.replace('base = "default"', "")
    default = (KIT / "grader/course/rubrics/default.toml").read_text()
    tasks = default[default.index("[tasks]") : default.index("# A check without a task")]
    files = 'files = ["python/dlsys/autodiff.py", "src/gpu_op.cu"]\nsizes = "thorough"\n'
    head, parts, rest = text.partition("[parts]")
    path.write_text(head + files + tasks + parts + rest)
    return path


@pytest.fixture
def submissions(tmp_path):
    """Two right ones that are the same, one of the skeleton, one that can't be read."""
    folder = tmp_path / "submissions"
    for student in ("s1", "s2"):
        write(folder / student, KIT / "solution")
    write(folder / "s3", KIT / "assignment")
    (folder / "s4.zip").write_bytes(b"no zip")
    (tmp_path / "class.csv").write_text(
        "student,name,email\n"
        + "".join(f"s{n},Student {n},s{n}@example.edu\n" for n in range(1, 6))
    )
    return folder


def write(folder, source, more=""):
    for name in catalogue.FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / name, folder / name)
    if more:
        path = folder / catalogue.FILES[0]
        path.write_text(path.read_text() + more)


@pytest.fixture
def here():
    """An engine in this process, whose parts a test can replace."""
    return Engine("here", lambda: ThreadPoolExecutor(1), lambda: 1)


@pytest.fixture
def asked(tmp_path, submissions, rubric_file):
    return Batch(
        submissions, tmp_path / "results", load_rubric(str(rubric_file)), tmp_path / "class.csv",
        device="emulated", cache=tmp_path / "cache",
    )  # fmt: skip


def grade(asked, using):
    """(what was graded, the class afterwards)."""
    with Running(asked) as running:
        done = list(running.run(running.plan(), using))
        return done, running.book


def states(book):
    return {s.entry.student: (s.state, s.score) for s in book.standings()}


def journal(results):
    return [json.loads(line) for line in (results / "journal.jsonl").read_text().splitlines()]


ALL = {
    "s1": (GRADED, 3.0), "s2": (GRADED, 3.0), "s3": (GRADED, 0.0), "s4": (UNREADABLE, 0.0),
    "s5": (MISSING, 0.0),
}  # fmt: skip


def test_a_class_is_graded_and_equal_work_once(asked, here):
    done, book = grade(asked, here)
    assert states(book) == ALL
    assert sorted(len(each.standings) for each in done) == [1, 2]
    assert states(read_classbook(asked.results)) == ALL
    assert Path(book.report(book.entries[1]).submission).name == "s2"


def test_a_second_run_has_nothing_to_do(asked, here):
    grade(asked, here)
    before = journal(asked.results)
    done, book = grade(asked, here)
    assert (done, states(book), journal(asked.results)) == ([], ALL, before)


def test_other_results_are_filled_from_the_cache(asked, here, tmp_path):
    grade(asked, here)
    done, book = grade(replace(asked, results=tmp_path / "other"), here)
    assert {each.where for each in done} == {"cache"}
    assert states(book) == ALL
    assert Path(book.report(book.entries[1]).submission).name == "s2"


def test_what_a_student_hands_in_anew_is_graded_anew(asked, here, submissions):
    grade(asked, here)
    write(submissions / "s3", KIT / "solution", "# now it is done\n")
    done, book = grade(asked, here)
    assert [s.entry.student for each in done for s in each.standings] == ["s3"]
    assert states(book)["s3"] == (GRADED, 3.0)
    kept = list(book.folder(book.entries[2]).glob("report-before-*.json"))
    assert [json.loads(path.read_text())["score"] for path in kept] == [0]


def test_results_by_another_rubric_are_not_overwritten(asked, here):
    grade(asked, here)
    other = replace(asked, rubric=load_rubric("classic"))
    with (
        pytest.raises(BatchError, match=r"another rubric, profile first; hint: say so again"),
        Running(other),
    ):
        pass


def test_regrading_keeps_the_former_reports(asked, here):
    grade(asked, here)
    done, book = grade(replace(asked, regrade=True), here)
    assert len(done) == 2
    assert states(book) == ALL
    for entry in book.entries[:3]:
        assert len(list(book.folder(entry).glob("report-before-*.json"))) == 1


def test_a_group_is_graded_once_and_stays_a_group(asked, here, tmp_path):
    groups = tmp_path / "groups.csv"
    groups.write_text("student,group\ns3,red\ns5@example.edu,red\n")
    done, book = grade(replace(asked, groups=groups), here)
    assert states(book) == {**ALL, "s5": (GRADED, 0.0)}
    assert sorted(len(each.standings) for each in done) == [2, 2]
    assert Path(book.report(book.entries[4]).submission).name == "s3"
    # nobody has to say it again
    write(asked.source / "s3", KIT / "solution", "# now it is done\n")
    _, book = grade(asked, here)
    assert states(book) == {**ALL, "s3": (GRADED, 3.0), "s5": (GRADED, 3.0)}


def test_without_a_roster_the_groups_say_who_is_in_the_class(asked, here, tmp_path):
    groups = tmp_path / "groups.csv"
    groups.write_text("student,group\ns1,red\ns2,\ns7,red\n")
    _, book = grade(replace(asked, roster=None, groups=groups), here)
    found = states(book)
    assert found["s7"] == found["s1"] == (GRADED, 3.0)
    assert set(found) == {"s1", "s2", "s3", "s4", "s7"}


def test_results_do_not_depend_on_the_folder_that_they_were_asked_from(
    asked, here, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    relative = replace(asked, source=Path("submissions"), results=Path("results"))
    _, book = grade(relative, here)
    assert states(book) == ALL
    sources = [Path(entry.source) for entry in book.entries if entry.source]
    assert all(path.is_absolute() and path.exists() for path in sources)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with Running(replace(asked, source=Path("../submissions"), results=Path("../results"))) as run:
        plan = run.plan()
    assert (plan.students, plan.finished, plan.unreadable, plan.failed) == (0, 3, 1, 0)


def test_only_some_students_are_graded(asked, here):
    done, book = grade(replace(asked, only=("s3@example.edu",)), here)
    assert [s.entry.student for each in done for s in each.standings] == ["s3"]
    assert states(book)["s1"] == (PENDING, 0.0)
    with pytest.raises(BatchError, match="nobody in the class is 'x'"):
        grade(replace(asked, only=("x",)), here)


def test_a_fault_of_the_grader_is_told_and_mended_by_the_next_run(asked, here, monkeypatch):
    def broken(work):
        raise GraderError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(batch, "grade_work", broken)
        _, book = grade(asked, here)
    assert [s.state for s in book.standings()] == [ERROR, ERROR, ERROR, UNREADABLE, MISSING]
    assert "no space left" in next(book.standings()).problem
    _, book = grade(asked, here)
    assert states(book) == ALL
    assert not list(asked.results.glob("students/*/error.txt"))


def test_a_fault_of_the_grader_on_new_work_hides_the_former_score(
    asked, here, submissions, monkeypatch
):
    grade(asked, here)
    write(submissions / "s3", KIT / "solution", "# now it is done\n")

    def broken(work):
        raise GraderError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(batch, "grade_work", broken)
        done, book = grade(asked, here)
    assert [s.state for each in done for s in each.standings] == [ERROR]
    assert states(book)["s3"] == (ERROR, 0.0)
    _, book = grade(asked, here)
    assert states(book)["s3"] == (GRADED, 3.0)


def test_work_that_this_machine_cannot_read_costs_nothing(asked, here, monkeypatch):
    load = batch.load_contained

    def failing(path, *more):
        if path.name == "s1":
            raise OSError(24, "Too many open files")
        return load(path, *more)

    monkeypatch.setattr(batch, "load_contained", failing)
    _, book = grade(asked, here)
    standing = next(book.standings())
    assert (standing.entry.student, standing.state) == ("s1", ERROR)
    assert "Too many open files" in standing.problem
    assert states(book)["s2"] == (GRADED, 3.0)


def test_work_that_is_gone_after_it_was_collected_costs_nothing(asked, here, submissions):
    with Running(asked) as running:
        shutil.rmtree(submissions / "s3")
        assert running.plan().failed == 1
        found = {s.entry.student: s for s in running.book.standings()}
    assert found["s3"].state == ERROR
    assert "is gone" in found["s3"].problem


@pytest.mark.parametrize("change", ["edit", "remove"])
def test_work_that_changes_while_the_class_is_graded_is_told(asked, here, submissions, change):
    with Running(asked) as running:
        plan = running.plan()
        if change == "edit":
            write(submissions / "s3", KIT / "assignment", "# once more\n")
        else:
            shutil.rmtree(submissions / "s3")
        assert len(list(running.run(plan, here))) == 2
        found = {s.entry.student: s for s in running.book.standings()}
    assert found["s3"].state == ERROR
    assert "changed while it was being graded" in found["s3"].problem
    assert found["s1"].state == GRADED


def test_who_is_in_an_earlier_download_alone_keeps_the_result(asked, here, tmp_path):
    grade(asked, here)
    write(tmp_path / "late" / "s5", KIT / "solution", "# late\n")
    for roster in (asked.roster, None):
        done, book = grade(replace(asked, source=tmp_path / "late", roster=roster), here)
        found = states(book)
        assert (found["s1"], found["s3"], found["s5"][0]) == (ALL["s1"], ALL["s3"], GRADED)
        assert any("the former result stands: s1, s2, s3, s4" in note for note in book.notes)
    assert done == []


def test_students_keep_their_folders_when_others_come(asked, here, submissions):
    alone = replace(asked, roster=None)
    write(submissions / "a-b", KIT / "solution")
    _, book = grade(alone, here)
    before = {entry.student: entry.folder for entry in book.entries}
    write(submissions / "a b", KIT / "assignment", "# mine\n")
    _, book = grade(alone, here)
    after = {entry.student: entry.folder for entry in book.entries}
    assert before.items() <= after.items()
    assert len(set(after.values())) == len(after)
    assert states(book)["a-b"] == (GRADED, 3.0)
    assert states(book)["a b"] == (GRADED, 0.0)


def test_what_was_told_apart_by_the_roster_is_not_in_the_report(asked, here, submissions):
    write(submissions / "stranger", KIT / "solution")
    _, book = grade(asked, here)
    entry = next(entry for entry in book.entries if entry.student == "stranger")
    assert entry.notes
    assert not set(entry.notes) & set(book.report(entry).notes)


def test_a_second_run_does_not_write_unreadable_reports_again(asked, here):
    grade(asked, here)
    _, book = grade(asked, here)
    entry = next(entry for entry in book.entries if entry.student == "s4")
    assert [path.name for path in book.folder(entry).iterdir()] == ["report.json"]


def test_without_isolation_nothing_is_graded_unless_asked(asked, here, monkeypatch):
    works = not isolation.why_not("process")  # not for root where others can't read the kit
    monkeypatch.setattr(isolation, "why_not", lambda level: "" if level == "process" else "no")
    with pytest.raises(BatchError, match="this machine has no isolation"):
        grade(asked, here)
    if works:
        _, book = grade(replace(asked, isolation="process"), here)
        assert states(book) == ALL


def test_two_runs_do_not_write_to_the_same_results(asked):
    with Running(asked), pytest.raises(BatchError, match="another run"), Running(asked):
        pass


def test_a_worker_with_another_grader_is_refused(asked, here, monkeypatch):
    digests = iter(["one", "two", "two"])
    monkeypatch.setattr(job, "_grader_digest", lambda course: next(digests))
    _, book = grade(asked, here)
    assert "another version of the grader" in next(book.standings()).problem


def test_the_parent_holds_few_submissions_at_a_time(asked, here, submissions, monkeypatch):
    """They are read one by one as workers take them."""
    for number in range(10, 18):
        write(submissions / f"s{number}", KIT / "assignment", f"# {number}\n")
    loaded = Counter()
    seen = []
    with Running(asked) as running:
        plan = running.plan()
        load = running._load

        def counting(entry):
            loaded["now"] += 1
            return load(entry)

        running._load = counting
        for done in running.run(plan, here):
            seen.append(loaded["now"])
            assert done.standings
    assert all(now <= done + 2 for done, now in enumerate(seen))


# --- the command --------------------------------------------------------------------------------


def command(asked, rubric_file, *words):
    return [
        sys.executable, "-m", "grader", "batch", str(asked.source), "-o", str(asked.results),
        "--roster", str(asked.roster), "--profile", str(rubric_file), "--device", "emulated",
        "--no-cache", *words,
    ]  # fmt: skip


def test_the_command_tells_each_result_and_the_end(asked, rubric_file, capsys):
    words = command(asked, rubric_file, "--jobs", "1")[3:]
    assert main.main(words) == 0
    said = capsys.readouterr().out
    assert (
        "5 students: 3 to grade (2 different submissions), 0 finished, 1 missing, 1 unreadable"
        in said
    )
    assert "3/3 s" in said
    assert "3 graded, 1 missing, 1 unreadable" in said


def test_who_was_not_asked_for_does_not_fail_the_command(asked, rubric_file, capsys):
    words = command(asked, rubric_file, "--jobs", "1", "--only", "s3")[3:]
    assert main.main(words) == 0
    assert "1 graded" in capsys.readouterr().out


def test_a_wrong_command_line_is_told(asked, rubric_file, capsys):
    assert main.main(["batch", "nowhere"]) == 2
    assert "nowhere does not exist" in capsys.readouterr().err
    assert main.main(command(asked, rubric_file, "--slurm-option", "x=1")[3:]) == 2


def test_a_run_that_is_killed_three_times_loses_nothing_and_grades_nothing_twice(
    asked, rubric_file, submissions
):
    for number in range(10, 22):
        write(submissions / f"s{number}", KIT / "assignment", f"# {number}\n")
    chance, seen = random.Random(5), set()
    for _ in range(3):
        run = subprocess.Popen(
            command(asked, rubric_file, "--jobs", "2"), cwd=KIT, stdout=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        wanted = len(seen) + chance.randint(1, 3)
        while run.poll() is None and len(graded(asked.results)) < wanted:
            time.sleep(0.02)
        os.kill(run.pid, signal.SIGKILL)
        run.wait()
        wait_for_the_end(run.pid)
        assert seen <= graded(asked.results)
        seen = graded(asked.results)
    assert subprocess.run(command(asked, rubric_file), cwd=KIT, check=False).returncode == 0
    book = read_classbook(asked.results)
    assert Counter(s.state for s in book.standings()) == {GRADED: 15, UNREADABLE: 1, MISSING: 1}
    # A kill between a report and its line costs that line, never a second grading.
    lines = Counter(line["student"] for line in journal(asked.results))
    assert max(lines.values()) == 1
    assert len(lines) >= 15 - 3


def graded(results):
    return {path.parent.name for path in results.glob("students/*/report.json")}


def wait_for_the_end(session):
    """Until no process of a session runs: they end with the first one. This process may have
    adopted them, and nobody collects them then."""
    while any(state != "Z" and sid == session for state, sid in processes()):
        time.sleep(0.05)


def processes():
    """(state, session) of every process."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, session = path.read_bytes().rpartition(b")")[2].split()[:4]
        except OSError:
            continue  # it has just ended
        yield state.decode(), int(session)


def test_a_cluster_gives_equal_results_with_a_worker_killed(asked, submissions, tmp_path):
    pytest.importorskip("distributed")
    from grader.batch import engine

    for number in range(10, 15):
        write(submissions / f"s{number}", KIT / "assignment", f"# {number}\n")
    alone = replace(asked, results=tmp_path / "alone", cache=None)
    using = local(1)
    _, expected = grade(alone, using)
    cluster = Cluster(tmp_path)
    try:
        workers = [cluster.worker() for _ in range(2)]
        using = engine.cluster(cluster.address)
        with Running(replace(asked, cache=None)) as running:
            done = 0
            for each in running.run(running.plan(), using):
                if not done:
                    workers[0].kill()
                done += len(each.standings)
            book = running.book
        using.close()
    finally:
        cluster.stop()
    assert states(book) == states(expected)
    assert len(journal(asked.results)) == len(journal(alone.results)) == 8
