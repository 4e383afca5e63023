"""Every typical mistake is shown in the student's own folder, in the words that the grader uses."""

import re
import shutil

import pytest

import mistakes
from shares import share

BUILD = "does_not_compile"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return mistakes.student_folder(tmp_path_factory.mktemp("mistakes") / "built")


@pytest.mark.parametrize(
    "mutant",
    share(mistakes.mistakes(), 5, lambda mutant: mutant.name == BUILD),
    ids=lambda mutant: mutant.name,
)
def test_a_mistake_is_shown_where_it_was_made(mutant, built, tmp_path):
    told = mistakes.make(mutant, shutil.copytree(built, tmp_path / "work", symlinks=True))
    for words in mutant.says:
        assert any(one in told.text for one in words.split(" | ")), told.text
    if mutant.name == BUILD:
        assert re.match(r"src/gpu_op\.cu:\d+:", told.words)
    else:
        assert re.fullmatch(r"[12]\.\d+", told.task)


def test_the_table_has_every_mistake():
    text = mistakes.TABLE.read_text()
    assert re.findall(r"\(`(\w+)`\) \|", text) == list(mistakes.NAMES)
    assert text.startswith(mistakes.INTRODUCTION.partition("{")[0])
