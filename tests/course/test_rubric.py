"""Rubrics that build on others: what they add, replace and leave out."""

import pytest

from grader.course.rubric import RubricError, load_rubric, rubric_files

BASE = """title = "t"
description = "of the base"
files = ["work.py"]
sizes = "published"
[parts]
[tasks]
[[check]]
name = "first"
points = 1
[[check]]
name = "second"
points = 2
[mnist]
epochs = 4
batch = 50
"""


def write(folder, **files):
    for name, text in files.items():
        (folder / f"{name}.toml").write_text(text)
    return str(folder / f"{list(files)[-1]}.toml")


def added(base, name, points):
    return f'base = "{base}"\n[[added_check]]\nname = "{name}"\npoints = {points}\n'


def rows(path):
    return [(row.name, row.points) for row in load_rubric(path).rows]


def test_added_checks_come_after_those_of_the_base(tmp_path):
    path = write(tmp_path, base=BASE, more=added("base", "third", 3))
    assert rows(path) == [("first", 1), ("second", 2), ("third", 3)]
    read = load_rubric(path)
    assert (read.profile, read.title, read.description) == ("more", "t", "of the base")
    assert read.digest != load_rubric(str(tmp_path / "base.toml")).digest


def test_an_added_check_takes_the_place_of_one_of_its_name(tmp_path):
    path = write(tmp_path, base=BASE, more=added("base", "first", 5))
    assert rows(path) == [("first", 5), ("second", 2)]


def test_a_rubric_s_own_checks_take_the_place_of_all_of_the_base_s(tmp_path):
    own = 'base = "base"\n[[check]]\nname = "other"\npoints = 1\n[mnist]\nepochs = 1\n'
    path = write(tmp_path, base=BASE, own=own)
    assert rows(path) == [("other", 1)]
    assert load_rubric(path).mnist == {"epochs": 1, "batch": 50}


def test_a_base_may_have_a_base(tmp_path):
    middle, top = added("base", "third", 3), added("middle", "fourth", 4)
    path = write(tmp_path, base=BASE, middle=middle, top=top)
    assert [name for name, _ in rows(path)] == ["first", "second", "third", "fourth"]
    assert [file.stem for file in rubric_files(path)] == ["top", "middle", "base"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('base = "none"', "No such file"),
        ('base = "own"', "is a base of itself"),
        ('base = "base', "own.toml: "),
        ("", "has no checks; hint:"),
        (added("base", "third", 1) * 2, "own.toml: "),
        (added("base", "x", 1) + '[[added_check]]\nname = "x"\npoints = 1\n', "occurs twice"),
        *(
            (f'base = "base"\n[{table}]\nsecond = 1\n', "has the unknown key 'second'")
            for table in ("findings", "audit", "second_opinion")
        ),
        ('base = "base"\nfinding = 1\n', "has the unknown key 'finding'"),
        (added("base", "x", 1) + "point = 1\n", "has the unknown key 'point'"),
    ],
)
def test_a_rubric_that_makes_no_sense_is_refused(tmp_path, text, words):
    path = write(tmp_path, base=BASE, own=text)
    with pytest.raises(RubricError, match=words):
        load_rubric(path)
