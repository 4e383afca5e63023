"""One report in every format: what a student may see of it, and what readers take."""

import dataclasses
import io
import json
import os
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import jsonschema
import pytest
from rich.console import Console

import catalogue
import sample_report
from grader.base.files import write_whole
from grader.base.printable import LINE, printable
from grader.cli import main
from grader.course.rubric import NEVER, RubricError, load_rubric
from grader.grading.runner import Options, grade
from grader.report.audience import standing, student_view
from grader.report.junit import to_junit
from grader.report.model import ERROR, FAIL, PASS, Report, Result
from grader.report.schema import FILE, report_schema
from grader.report.stored import StoredError, read_report
from grader.report.terminal import show_report
from sample_report import result

KIT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads(FILE.read_text())
SHOWN = ("build", "topological_order", "relu", "softmax")


def validate(data):
    kind = jsonschema.Draft202012Validator
    kind.check_schema(SCHEMA)
    kind(SCHEMA, format_checker=kind.FORMAT_CHECKER).validate(data)


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """The JSON of a real submission: a wrong kernel, a hidden check."""
    folder = tmp_path_factory.mktemp("graded")
    mutants = {mutant.name: mutant for mutant in catalogue.mutants()}
    work = catalogue.write(mutants["relu_leaky"], folder / "work")
    rubric = load_rubric("default")
    rows = tuple(
        dataclasses.replace(row, visible=NEVER) if row.name == "softmax" else row
        for row in rubric.rows
    )
    rubric = dataclasses.replace(rubric, rows=rows)
    grade(work, Options(rubric, "emulated", seed="5eed", only=SHOWN, output=folder / "r.json"))
    return folder / "r.json"


def shown(report):
    text = io.StringIO()
    show_report(Console(file=text, width=100), report)
    return text.getvalue()


# --- the rubric ---------------------------------------------------------------------------------


def write_rubric(folder, checks):
    lines = ['base = "default"', 'title = "t"', 'description = "d"', 'sizes = "published"']
    for check in checks:
        lines += ["[[check]]", *(f"{key} = {json.dumps(value)}" for key, value in check.items())]
    (folder / "default.toml").write_text((KIT / "grader/course/rubrics/default.toml").read_text())
    (folder / "own.toml").write_text("\n".join(lines))
    return str(folder / "own.toml")


def test_a_check_is_always_visible_unless_the_rubric_says_otherwise(tmp_path):
    checks = [{"name": "build", "points": 0}, {"name": "relu", "points": 1, "visible": "never"}]
    rows = load_rubric(write_rubric(tmp_path, checks)).rows
    assert [row.visible for row in rows] == ["always", "never"]


def test_an_unknown_visibility_is_refused_with_those_that_there_are(tmp_path):
    checks = [{"name": "build", "points": 0, "visible": "sometimes"}]
    with pytest.raises(
        RubricError, match=r"'build': .*'sometimes', expected after_due_date, always or never"
    ):
        load_rubric(write_rubric(tmp_path, checks))


def test_a_public_check_can_not_require_a_hidden_one(tmp_path):
    hidden = {"name": "relu", "points": 1, "visible": "after_due_date"}
    public = {"name": "softmax", "points": 1, "requires": ["relu"]}
    with pytest.raises(RubricError, match=r"'softmax', visible always, requires 'relu'"):
        load_rubric(write_rubric(tmp_path, [hidden, public]))
    public["visible"] = "never"
    assert load_rubric(write_rubric(tmp_path, [hidden, public])).points == 2


# --- what a student may see ---------------------------------------------------------------------


def test_a_student_sees_no_hidden_check_no_seed_no_path_and_no_traceback():
    view = student_view(sample_report.report())
    text = json.dumps(view.to_dict()) + shown(view) + to_junit(view)
    for secret in ("memory_plan does", "a hidden mistake", "softmax_cross_entropy", "5ec4e7",
                   "/home/teacher", "secret disk", "secret.py"):  # fmt: skip
        assert secret not in text
    assert view.submission == "<b>smith.tar.gz"
    assert view.withheld == {"after_due_date": 1, "never": 1}
    assert view.withheld_points == 3


def test_after_the_due_date_a_student_sees_more_but_never_what_is_never_shown():
    view = student_view(sample_report.report(), after_due_date=True)
    names = [each.check for each in view.results]
    assert "memory_plan" in names and "softmax_cross_entropy" not in names
    assert view.withheld == {"never": 1}


def test_the_view_of_a_view_gives_nothing_back():
    view = student_view(sample_report.report())
    assert student_view(view, after_due_date=True) == view


def test_the_standing_is_honest_about_hidden_checks():
    rows = [result("a"), result("b", visibility="after_due_date", status=FAIL)]
    six = [result(str(i), visibility="after_due_date") for i in range(6)]
    for hidden, said in (
        (rows[1:], "all public checks passed; 1 hidden one is graded after the due date"),
        (six, "all public checks passed; 6 hidden ones are graded after the due date"),
        ([result("c", visibility=NEVER)], "all public checks passed; 1 hidden one is never shown"),
        ([], "all checks passed"),
    ):
        assert standing(student_view(sample_report.report([rows[0], *hidden]))) == said
    assert standing(sample_report.report(rows)) == "1 of 2 checks passed"


def test_the_standing_says_what_the_grader_could_not_do():
    errors = sample_report.report([result("a"), result("b", ERROR)], complete=False)
    assert standing(errors) == (
        "1 of 2 checks passed; the grader itself failed in 1; their points are open; "
        "the grading did not finish"
    )
    assert standing(sample_report.report([result("a", "skipped")])) == "no check ran"


# --- text ---------------------------------------------------------------------------------------


def test_printable_text_has_no_control_no_direction_and_no_endless_line():
    safe = printable(sample_report.HOSTILE + "\n" + "x" * (LINE + 5))
    assert not any(ord(c) < 32 and c not in "\n\t" for c in safe)
    assert not {"\x7f", "\x9b", "\u202e", "\ud800", "\ufffe"} & set(safe)
    assert "\\x00" in safe and "\\u202e" in safe and "[31m" not in safe and "owned\\x07" not in safe
    assert "é" in safe and "\U0001f600" in safe
    assert safe.endswith("... (5 more characters)")


def test_the_terminal_gets_no_command_of_a_submission():
    text = shown(sample_report.report())
    assert "\x1b" not in text and "\x9b" not in text and "[/bold]" in text
    assert text.count("Write behind the end: src/gpu_op.cu:2") == 1
    assert text.count("thread 3 writes 4 bytes") == 1 and "checked build" in text


def test_a_file_is_whole_or_as_before(tmp_path, monkeypatch):
    write_whole(tmp_path / "a" / "f", "one \ud800")
    assert (tmp_path / "a" / "f").read_text() == "one ?"

    def fail(*_):
        raise OSError("no space")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="no space"):
        write_whole(tmp_path / "a" / "f", "two")
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["f"]
    assert (tmp_path / "a" / "f").read_text() == "one ?"


# --- JSON ---------------------------------------------------------------------------------------


def test_a_real_report_and_what_a_student_sees_of_it_are_valid(graded):
    data = json.loads(graded.read_text())
    validate(data)
    assert [each["status"] for each in data["results"]] == [PASS, PASS, FAIL, PASS]
    assert data["results"][2]["facts"]["mismatch"]["shape"] == [1025]
    view = student_view(read_report(graded)).to_dict()
    validate(view)
    assert [each["check"] for each in view["results"]] == [
        "build",
        "topological_order",
        "relu",
    ]


def test_a_report_with_everything_is_valid():
    validate(json.loads(json.dumps(sample_report.report().to_dict())))


@pytest.mark.parametrize(
    "place, value",
    [("status", "passed"), ("score", -1), ("score", "1"), ("visibility", "hidden"), ("task", "2"),
     ("details", "text"), ("facts", {"mismatch": {"shape": [3]}}), ("findings", [{}])],
)  # fmt: skip
def test_the_schema_rejects_a_result_that_is_wrong(place, value):
    data = sample_report.report().to_dict()
    data["results"][2][place] = value
    with pytest.raises(jsonschema.ValidationError):
        validate(data)


def test_the_schema_describes_every_field_of_the_model():
    for kind, schema in ((Report, SCHEMA), (Result, SCHEMA["$defs"]["Result"])):
        names = {field.name for field in dataclasses.fields(kind)}
        if kind is Report:
            names |= {"schema", "grader_version", "score", "points"}
        assert set(schema["properties"]) == set(schema["required"]) == names
        for name, entry in schema["properties"].items():
            assert entry.get("description") or "$ref" in entry, name
    assert set(SCHEMA["$defs"]["Finding"]["properties"]) == set(sample_report.finding())


def test_the_schema_is_made_from_the_types():
    hint = "hint: python -m grader.report.schema"
    assert FILE.read_text() == json.dumps(report_schema(), indent=1) + "\n", hint


def test_a_stored_report_is_the_same_when_it_is_read(tmp_path, graded):
    report = sample_report.report()
    report.write(tmp_path / "r.json")
    assert read_report(tmp_path / "r.json") == report
    assert read_report(graded).to_dict() == json.loads(graded.read_text())


def test_what_was_measured_as_nan_is_null_in_the_file(tmp_path):
    odd = {"losses": [2.3, float("nan")], "mlp": {"ratio": (float("inf"), -float("inf"), 1)}}
    kept = sample_report.report([sample_report.result("mnist_gpu", facts=odd)])
    kept.write(tmp_path / "r.json")
    text = (tmp_path / "r.json").read_text()
    raw = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    wanted = {"losses": [2.3, None], "mlp": {"ratio": [None, None, 1]}}
    assert raw["results"][0]["facts"] == wanted
    assert read_report(tmp_path / "r.json").results[0].facts == wanted
    kept.results[0].score = float("nan")
    with pytest.raises(ValueError, match="not JSON compliant"):
        kept.write(tmp_path / "r.json")


def test_a_stored_finding_that_calls_its_hint_a_cure_is_read(tmp_path):
    raw = sample_report.report().to_dict()
    [findings] = [result["findings"] for result in raw["results"] if result["findings"]]
    hint = findings[0]["hint"]
    findings[0]["cure"] = findings[0].pop("hint")
    (tmp_path / "r.json").write_text(json.dumps(raw))
    found = [
        finding
        for result in read_report(tmp_path / "r.json").results
        for finding in result.findings
    ]
    assert found[0]["hint"] == hint and "cure" not in found[0]


@pytest.mark.parametrize(
    "change, said",
    [
        (lambda d: d.update(schema="dlsys-grader-report/2"), "schema 'dlsys-grader-report/2'"),
        (lambda d: d.pop("title"), "title is missing"),
        (lambda d: d["results"][0].pop("check"), "check is missing"),
        (lambda d: d["results"][0].update(status="won"), "status is 'won'"),
        (
            lambda d: d["results"][0].update(score=True),
            "check 'build': score is True, expected a number from 0 on",
        ),
        (lambda d: d["results"][0].update(seconds=float("nan")), "seconds is nan"),
        (lambda d: d["results"][0].update(visibility="x"), "visibility is 'x'"),
        (
            lambda d: d["results"][0].update(details=[1]),
            "check 'build': details holds 1, expected a string",
        ),
        (
            lambda d: d["results"][0].update(findings=["x"]),
            "check 'build': findings holds 'x', expected a table",
        ),
        (lambda d: d.update(results={}), "results is {}, expected a list"),
        (lambda d: d.update(results=[1]), "results holds 1, expected a table"),
    ],
)
def test_a_stored_report_that_is_wrong_is_refused_in_words(tmp_path, change, said):
    data = sample_report.report().to_dict()
    change(data)
    (tmp_path / "r.json").write_text(json.dumps(data))
    with pytest.raises(StoredError, match=r"r\.json") as caught:
        read_report(tmp_path / "r.json")
    assert said in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b"[" * 100000])
def test_a_file_that_is_no_report_is_refused_in_words(tmp_path, content):
    (tmp_path / "r.json").write_bytes(content)
    with pytest.raises(StoredError, match=r"r\.json"):
        read_report(tmp_path / "r.json")


# --- JUnit XML ----------------------------------------------------------------------------------

ATTRIBUTES = {
    "testsuites": {"name", "tests", "failures", "errors", "skipped", "time"},
    "testsuite": {"name", "tests", "failures", "errors", "skipped", "time", "timestamp"},
    "testcase": {"name", "classname", "time"},
    "property": {"name", "value"},
    "properties": set(),
    "failure": {"message"},
    "error": {"message"},
    "skipped": {"message"},
    "system-out": set(),
}
CHILDREN = {
    "testsuites": {"testsuite"},
    "testsuite": {"properties", "testcase", "system-out"},
    "testcase": {"properties", "failure", "error", "skipped"},
    "properties": {"property"},
}


def read_junit(text):
    """A strict reader: only the common subset, and counts that agree. Returns the root."""
    root = ElementTree.fromstring(text.encode())
    assert root.tag == "testsuites"
    for element in root.iter():
        assert set(element.attrib) == ATTRIBUTES[element.tag]
        assert {child.tag for child in element} <= CHILDREN.get(element.tag, set())
    for parent in [root, *root]:
        cases = parent.findall(".//testcase")
        assert int(parent.get("tests")) == len(cases) > 0
        for count, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(parent.get(count)) == sum(case.find(tag) is not None for case in cases)
        assert float(parent.get("time")) >= 0
    for case in root.iter("testcase"):
        assert sum(case.find(tag) is not None for tag in ("failure", "error", "skipped")) <= 1
    return root


def test_junit_of_everything_is_what_a_strict_reader_takes():
    root = read_junit(to_junit(sample_report.report()))
    assert [root.get(name) for name in ("tests", "failures", "errors", "skipped")] == list("9211")
    assert [suite.get("name") for suite in root][1:] == ["part 1, autodiff", "part 2, gpu executor"]
    failure = root.find(".//failure")
    assert "relu: wrong <script>" in failure.get("message")
    assert "second line" in failure.text and "thread 3 writes 4 bytes" in failure.text
    points = [p.get("value") for p in root[1].find("properties") if p.get("name") == "points"]
    assert points == ["2"]


def test_junit_has_each_hint_and_the_points_of_the_report():
    hinted = result("relu", "fail", message="wrong", hint="look at the guard")
    told = sample_report.report([hinted, result("softmax", "fail", message="wrong too")])
    root = read_junit(to_junit(told))
    said = [failure.text for failure in root.iter("failure")]
    assert said == ["wrong\nhint: look at the guard", "wrong too"]
    kinds = [(p.get("name"), p.get("value")) for p in root.findall("testsuite/properties/property")]
    assert [value for name, value in kinds if name == "points"] == ["0", "2"]
    assert [value for name, value in kinds if name == "score"] == ["0", "0"]


def test_junit_of_a_real_report_counts_its_failure(graded):
    root = read_junit(to_junit(read_report(graded)))
    assert root.get("failures") == "1"
    assert root.find(".//failure/..").get("name").startswith("2.11 relu: ")


def test_junit_never_looks_like_success_where_nothing_was_graded():
    skipped = [result("relu", "skipped")]
    unread = read_junit(to_junit(sample_report.report(skipped, problem="no such file")))
    assert unread.get("failures") == "1"
    assert unread.find(".//failure").get("message") == "no such file"
    killed = read_junit(to_junit(sample_report.report([], complete=False)))
    assert killed.get("errors") == "1"


# --- the command --------------------------------------------------------------------------------


def test_report_converts_a_stored_report_to_all_formats(tmp_path, graded, capsys):
    names = ("html", "junit", "gradescope", "json")
    paths = {name: tmp_path / "deep" / name for name in names}
    arguments = [part for name in names for part in (f"--{name}", str(paths[name]))]
    assert main.main(["report", str(graded), *arguments]) == 0
    assert "of 1,025 elements differ" in capsys.readouterr().out
    read_junit(paths["junit"].read_text())
    assert json.loads(paths["json"].read_text()) == json.loads(graded.read_text())
    assert len(json.loads(paths["gradescope"].read_text())["tests"]) == 4
    assert "elements differ" in paths["html"].read_text()


def test_report_for_a_student_shows_and_writes_no_hidden_check(tmp_path, graded, capsys):
    paths = [tmp_path / name for name in ("r.html", "r.xml", "r.json")]
    files = [part for option, path in zip(("--html", "--junit", "--json"), paths, strict=True)
             for part in (option, str(path))]  # fmt: skip
    assert main.main(["report", str(graded), "--student", *files]) == 0
    texts = [capsys.readouterr().out, *(path.read_text() for path in paths)]
    for text in texts:
        assert "softmax works on each row" not in text and "seed 5eed" not in text
        assert '"5eed"' not in text
        assert "relu keeps what is positive" in text
    assert "2 of 3 public checks passed; 1 hidden one is never shown" in texts[0]


def test_results_json_is_not_made_of_a_students_report(tmp_path, graded, capsys):
    assert main.main(["report", str(graded), "--student", "--json", str(tmp_path / "s.json")]) == 0
    wanted = ["--gradescope", str(tmp_path / "results.json")]
    assert main.main(["report", str(tmp_path / "s.json"), *wanted]) == 2
    assert "hidden checks" in capsys.readouterr().err
    assert not (tmp_path / "results.json").exists()


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["report", "{}/none.json"], "none.json"),
        (["report", "{}/bad.json"], "is not JSON"),
        (["report", "{}/good.json", "--html", "{}"], "is a folder"),
        (["report", "{}/good.json", "--after-due-date"], "needs --student"),
        (["report", "{}/good.json", "--junit", "{}/good.json/x"], "--junit"),
        (["gradescope", "{}/a.zip", "--minutes", "0.5"], "too few"),
        (["gradescope", "{}/a.zip", "--profile", "none"], "no rubric 'none'"),
        (["gradescope", "{}/a.zip", "--data", "{}"], "four files of MNIST"),
        (["gradescope", "{}/a.zip", "--data", "{}/none"], "is not a folder"),
    ],
)
def test_wrong_arguments_are_refused_in_words(tmp_path, capsys, arguments, said):
    (tmp_path / "bad.json").write_text("{")
    sample_report.report().write(tmp_path / "good.json")
    code = main.main([part.format(tmp_path) for part in arguments])
    assert code == (3 if "none.json" in said else 2)
    assert said in capsys.readouterr().err


def test_the_exit_code_for_a_student_says_nothing_of_hidden_checks(tmp_path, monkeypatch, capsys):
    rows = [result("relu"), result("softmax", FAIL, visibility="after_due_date", message="hidden!")]

    def fake(source, options, on_result):
        for row in rows:
            on_result(row)
        return sample_report.report(rows)

    monkeypatch.setattr("grader.cli.grade.grade", fake)
    assert main.main(["grade", str(tmp_path)]) == 1
    assert "shown after the due date" in capsys.readouterr().out
    assert main.main(["grade", str(tmp_path), "--student"]) == 0
    out = capsys.readouterr().out
    assert "softmax" not in out and "1 hidden one is graded after the due date" in out
    assert main.main(["grade", str(tmp_path), "--student", "--after-due-date"]) == 1
    assert "hidden!" in capsys.readouterr().out
