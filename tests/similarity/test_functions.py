"""One function that two students share in different files: what is found, and what never is."""

import csv
import io
import json
import random
import re
import shutil
from pathlib import Path

import pytest

import similar_class
from grader.cli import main
from grader.release import holes
from grader.similarity.fingerprint import TOP, fingerprint, skeleton
from grader.similarity.functions import LITTLE
from grader.similarity.measure import compare
from grader.similarity.page import to_csv, to_html, to_json, view

KIT = Path(__file__).resolve().parents[2]
HONEST = KIT / "tests/honest"
#: What the honest styles were written on: the skeleton whose autodiff.py held all that is given.
EARLIER = Path(__file__).parent / "earlier_skeleton"
PYTHON, CUDA = FILES = similar_class.FILES
#: Honest styles of which no two have the same file.
STYLES = ("beginner", "classes", "habits", "macros", "strides")


def files_of(style):
    return {name: (HONEST / style / name).read_text() for name in FILES}


def pieces_of(text, name):
    """Name of a function -> its lines."""
    given = skeleton((KIT / "assignment" / name).read_text(), name)
    file, lines = fingerprint(text, name, given), text.split("\n")
    return {
        p.name: "\n".join(lines[file.lines[p.start] - 1 : file.lines[p.end - 1]])
        for p in file.pieces
        if p.name != TOP
    }


def with_function(style, other, name, function):
    """The files of a style, with one function of another one in disguise: other names, other
    layout, and the functions of the file in another order."""
    files, chance = files_of(style), random.Random(1)
    copy = pieces_of(files_of(other)[name], name)[function]
    if name == CUDA:
        copy = re.sub(r"//[^\n]*", "", copy).replace("{", "\n{\n").replace(";", ";\n\n")
        files[name] = similar_class.renamed_cuda(f"{files[name]}\n{copy}\n", chance)
    else:
        own = pieces_of(files[name], name)[function]
        assert files[name].count(own) == 1
        text = files[name].replace(own, copy.replace(" = ", "   =  "))
        files[name] = similar_class.disguised_python(text, chance)
    return files


def some_class(folder, **changed):
    """The honest styles, with other files for some; the reference counts less."""
    for style in STYLES:
        similar_class.write(changed.get(style) or files_of(style), folder / style)
    return compare([folder], [], FILES, reference=KIT / "solution", known=[EARLIER])


def standing_out(result):
    return [pair for pair in result.pairs() if pair.stands_out]


@pytest.mark.parametrize(
    ("style", "other", "name", "function"),
    [
        ("classes", "beginner", PYTHON, "MatMulOp.gradient"),
        ("habits", "strides", PYTHON, "Executor.memory_plan"),
        ("macros", "beginner", CUDA, "matrix_multiply_kernel"),
        ("habits", "strides", CUDA, "reduce_sum_kernel"),
    ],
)
def test_one_copied_function_in_two_different_files_is_found(
    style, other, name, function, tmp_path
):
    result = some_class(tmp_path, **{style: with_function(style, other, name, function)})
    (pair,) = standing_out(result)
    assert {pair.first.label, pair.second.label} == {style, other}
    assert pair.place == 1 and pair.whole.value < 0.35, "as wholes they are hardly alike"
    (match,) = pair.functions
    assert match.file == name and function in (match.first, match.second)
    assert match.likeness > 0.95 and match.shared >= LITTLE
    block = view(result, pair).blocks[0]
    assert (block.file, block.first, block.second) == (name, match.first, match.second)


def test_page_and_tables_name_the_function(tmp_path):
    files = with_function("classes", "beginner", PYTHON, "MatMulOp.gradient")
    result = some_class(tmp_path, classes=files)
    text = to_html(result)
    begin = text.index("The pairs that stand out")
    assert (
        begin < text.index("MatMulOp.gradient 100 %") < text.index("The most alike of the others")
    )
    assert "<strong>Distance</strong> says how unusual" in text
    first, *others = json.loads(to_json(result))["pairs"]
    assert first["functions"][0]["first"] == "MatMulOp.gradient" and first["stands_out"]
    assert not any(pair["functions"] or pair["stands_out"] for pair in others)
    rows = list(csv.DictReader(io.StringIO(to_csv(result))))
    assert [row["functions"] for row in rows[:2]] == ["MatMulOp.gradient 100 %", ""]
    assert [row["stands_out"] for row in rows[:2]] == ["yes", ""]


# --- what never makes a pair ----------------------------------------------------------------------


def test_honest_work_of_different_styles_makes_no_pair(tmp_path):
    result = some_class(tmp_path)
    assert len(result) == 10 and standing_out(result) == []
    assert "None: no file, and no function" in to_html(result)


@pytest.mark.parametrize("seed", [2, 7])
def test_a_class_that_wrote_alone_makes_no_pair(seed, tmp_path):
    similar_class.make_class(tmp_path, 40, 0, seed)
    assert standing_out(compare([tmp_path], [], FILES, reference=KIT / "solution")) == []


def test_a_function_that_most_of_the_class_has_makes_no_pair(tmp_path):
    copies = {
        style: with_function(style, "beginner", PYTHON, "MatMulOp.gradient") for style in STYLES[1:]
    }
    assert standing_out(some_class(tmp_path, **copies)) == []


def test_short_functions_and_those_that_the_reference_has_count_less(tmp_path):
    solved = pieces_of((KIT / "solution" / PYTHON).read_text(), PYTHON)
    short = [name for name in ("topo_sort_dfs", "AddOp.gradient", "MulOp.gradient")
             if name in solved]  # fmt: skip
    works = {}
    for style in ("beginner", "classes"):
        files = files_of(style)
        for name in short:
            own = pieces_of(files[PYTHON], PYTHON)[name]
            files[PYTHON] = files[PYTHON].replace(own, solved[name])
        works[style] = files
    assert short and standing_out(some_class(tmp_path, **works)) == []


def older_skeletons():
    """Name -> files of a skeleton of another year: nothing in them is a student's."""
    now = {name: (KIT / "assignment" / name).read_text() for name in FILES}
    stub = re.compile(r'raise NotImplementedError\("[^"]*"\)')
    cuda = re.sub(r"return not_written\(.*?\);", "return -1;  // TODO", now[CUDA])
    other = {PYTHON: stub.sub('assert False, "TODO: fill in"', now[PYTHON]), CUDA: cuda}
    given = 'assert len(input_vals) == len(node.inputs), "another number"\n        '
    more = {**now, PYTHON: stub.sub(lambda m: given + m[0], now[PYTHON])}
    return {"other words": other, "with more given": more}


@pytest.mark.parametrize("kind", ["other words", "with more given", "part 1 given"])
def test_the_skeleton_of_another_year_makes_no_pair(kind, tmp_path):
    if kind == "part 1 given":
        holes.release(KIT / "solution", tmp_path / "old", {2})
        files = {name: (tmp_path / "old" / name).read_text() for name in FILES}
    else:
        files = older_skeletons()[kind]
    for who in ("ann", "bob"):
        similar_class.write(files, tmp_path / "class" / who)
    similar_class.write(files, tmp_path / "earlier/cem")
    for style in STYLES:
        similar_class.write(files_of(style), tmp_path / "class" / style)
    result = compare(
        [tmp_path / "class"], [tmp_path / "earlier"], FILES, reference=KIT / "solution"
    )
    assert result.empty == ["ann", "bob", "cem"] and standing_out(result) == []


def test_what_is_known_counts_nothing(tmp_path, capsys):
    helper = pieces_of(files_of("strides")[PYTHON], PYTHON)["Executor.memory_plan"]
    helper = re.sub(r"(?m)^    ", "", helper).replace("memory_plan", "given_then")
    for style in ("beginner", "classes", "habits"):
        files = files_of(style)
        if style != "habits":
            files[PYTHON] += f"\n\n{helper}\n"
        similar_class.write(files, tmp_path / "class" / style)
    shutil.copytree(KIT / "assignment", tmp_path / "old", ignore=shutil.ignore_patterns("build"))
    path = tmp_path / "old" / PYTHON
    path.write_text(f"{path.read_text()}\n\n{helper}\n")
    said = []
    for known in ([], ["--known", str(tmp_path / "old")]):
        assert main.main(["similarity", str(tmp_path / "class"), *known]) == 0
        said.append(capsys.readouterr().out)
    assert "given_then" in said[0] and "given_then" not in said[1]


def test_comments_that_stay_in_written_functions_do_not_make_them_unwritten(tmp_path):
    for who, style in (("ann", "beginner"), ("bob", "classes")):
        files = files_of(style)
        files[PYTHON] = re.sub(r"(?m)^(    )(?=    return )", r"\1    # TODO: your code here\n\1",
                               files[PYTHON])  # fmt: skip
        similar_class.write(files, tmp_path / who)
    assert compare([tmp_path], [], FILES, reference=KIT / "solution").empty == []
