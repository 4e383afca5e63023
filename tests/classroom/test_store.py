"""class.json is read with suspicion: it may be old, damaged or written by hand."""

import json

import pytest

from grader.classroom.store import read_classbook
from grader.report.stored import StoredError


def rewritten(book, **changes):
    """class.json of a class, with other values."""
    path = book.path / "class.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    return book.path


def test_what_is_written_is_what_is_read(book):
    book.write()
    assert read_classbook(book.path) == book


def test_fields_of_a_later_version_are_passed_over(book):
    entries = [{"student": "ada", "folder": "ada", "colour": "red"}]
    read = read_classbook(rewritten(book, entries=entries, roster=entries, weather="fine"))
    assert [entry.student for entry in read.entries] == ["ada"]
    assert [person.student for person in read.roster] == ["ada"]


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"points": "many"}, "points is 'many', expected a number"),
        ({"entries": {}}, "entries is {}, expected a list"),
        (
            {"entries": [{"student": 3, "folder": "a"}]},
            "entries[0]: student is 3, expected a string",
        ),
        ({"entries": [{"student": "a", "name": "Ada"}]}, "entries[0]: folder is missing"),
        ({"roster": [{"name": "Ada"}]}, "roster[0]: student is missing"),
        ({"schema": "dlsys-grader-class/0"}, "has schema 'dlsys-grader-class/0'; this version rea"),
    ],
)
def test_a_wrong_value_is_named_with_its_place(book, changes, said):
    path = rewritten(book, **changes)
    with pytest.raises(StoredError) as caught:
        read_classbook(path)
    assert str(path / "class.json") in str(caught.value)
    assert said in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000])
def test_what_is_no_json_is_refused(book, text):
    (book.path / "class.json").write_text(text)
    with pytest.raises(StoredError, match="is not JSON"):
        read_classbook(book.path)


@pytest.mark.parametrize(
    ("said", "ratio"),
    [
        (0.4, 0.4),  # counted
        ({"min": 0.3, "median": 0.5, "max": 0.9}, 0.5),  # timed in rounds
        ({}, 0.0),
        ("fast", 0.0),
        (None, 0.0),
    ],
)
def test_a_speed_is_one_number_or_the_median_of_many(book, said, ratio):
    entry = next(entry for entry in book.entries if book.standing(entry).state == "graded")
    report = book.report(entry)
    report.results[0].facts = {"speed": {"ratio": said}}
    book.store(entry, report)
    assert book.standing(entry).outcomes[report.results[0].check].ratio == ratio
