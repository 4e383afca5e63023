"""Likeness of submissions: what copies can't hide, what counts nothing, and what the page says."""

import ast
import csv
import io
import json
import os
import random
import re
import shutil
import subprocess
import sys
import zipfile
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import catalogue
import similar_class
from grader.classroom.store import Classbook, Entry
from grader.cli import main
from grader.similarity.fingerprint import MOST_TOKENS, TOP, K, fingerprint, pieces, skeleton, tokens
from grader.similarity.functions import LITTLE
from grader.similarity.measure import _weights, compare
from grader.similarity.page import MOST_BLOCKS, MOST_LINES, to_csv, to_html, to_json, view
from grader.similarity.passages import copied_shares, passages
from sample_report import HOSTILE

KIT = Path(__file__).resolve().parents[2]
PYTHON, CUDA = FILES = similar_class.FILES


def given(name):
    return skeleton((KIT / "assignment" / name).read_text(), name)


def solution():
    return {name: (KIT / "solution" / name).read_text() for name in FILES}


def prints(files):
    return {name: fingerprint(text, name, given(name)) for name, text in files.items()}


def found(result, one, two):
    return next(p for p in result.pairs() if {p.first.label, p.second.label} == {one, two})


@pytest.fixture(scope="module")
def some_class(tmp_path_factory):
    """(what was found of 24 students and 6 copies, which pairs are copies and of what kind)."""
    folder = tmp_path_factory.mktemp("class")
    kinds = similar_class.make_class(folder, 30, 6, 1)
    return compare([folder], [], FILES), kinds


# --- what changes nothing -------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
def test_a_disguised_copy_of_the_solution_has_its_fingerprints(name):
    text = solution()[name]
    change = similar_class.disguised_python if name == PYTHON else similar_class.disguised_cuda
    copy = change(text, random.Random(1))
    one, two = prints({name: text})[name], prints({name: copy})[name]
    assert len(one.hashes) > 500
    assert sorted(one.hashes) == sorted(two.hashes)
    order = [piece.name for piece in one.pieces if piece.name != TOP]
    assert order != [piece.name for piece in two.pieces if piece.name != TOP]
    own = {one.text.split("\n")[line - 1].strip() for line in one.lines[one.written]}
    other = {two.text.split("\n")[line - 1].strip() for line in two.lines[two.written]}
    assert len(own & other) < 0.5 * len(own), "the copy is hardly disguised"


def test_a_disguised_python_file_is_still_python():
    copy = similar_class.disguised_python(solution()[PYTHON], random.Random(1))
    defined = {node.name for node in ast.walk(ast.parse(copy)) if isinstance(node, ast.ClassDef)}
    assert "MatMulOp" in defined and "_best_fit" not in copy


@pytest.mark.parametrize(
    ("name", "one", "two"),
    [
        ("a.py", "x = 1  # one\n", "y=0x1\n"),
        (
            "a.py",
            "def f(a):\n    '''says'''\n    return a + 'b'\n",
            'def g(b):\n  return b + "c"\n',
        ),
        ("a.cu", "int i = 0; // first", "long   j=0x0;"),
        ("a.cu", "const float *x = y + 256;", "float* __restrict__ z = w + 0x100u;"),
        ("a.cu", "unsigned long n;", "size_t m;"),
        ("a.cu", "/* a */ f(1.0f);\r\n", "g(1e0);"),
    ],
)
def test_names_comments_layout_and_the_spelling_of_constants_change_nothing(name, one, two):
    symbols = ["".join(token.symbol for token in tokens(text, name)) for text in (one, two)]
    assert symbols[0] == symbols[1] != ""


@pytest.mark.parametrize(
    ("name", "one", "two"),
    [
        ("a.py", "for x in y: pass", "while x in y: pass"),
        ("a.cu", "i = threadIdx.x;", "i = blockIdx.x;"),
        ("a.cu", "__syncthreads();", "other();"),
        ("a.cu", "a = b + c;", "a = b - c;"),
    ],
)
def test_other_code_has_other_symbols(name, one, two):
    assert [t.symbol for t in tokens(one, name)] != [t.symbol for t in tokens(two, name)]


def test_pieces_are_functions_and_leave_no_token_out():
    code = {
        "a.py": "import x\nclass A(B):\n    c = 1\n    @d\n    async def f(self,\nx):\n"
        "        def g():\n            pass\n        return g\n\ndef h(): return {\n1: 2}\n"
        "y = 3\n",
        "a.cu": "int a = 1;\nextern \"C\" {\n__global__ void __launch_bounds__(256) f(int n) "
        "{ if (n) { g(); } }\n}\nnamespace {\nstruct S { int x; };\n}\n"
        "int h(int a) { return a; }\n",
    }  # fmt: skip
    for name, names in (("a.py", ["A.f", "h"]), ("a.cu", ["f", "h"])):
        stream = tokens(code[name], name)
        parts = pieces(stream, name)
        assert [part.name for part in parts if part.name != TOP] == names
        ends = [0, *(part.end for part in parts)]
        assert [part.start for part in parts] == ends[:-1] and ends[-1] == len(stream)


@pytest.mark.parametrize("text", [
    "", "}", "{", "}}}{{{", "((((", "def", "class", "async", "def f(", "\0\0", "\ud800", "'''", '"',
    "#define X {", "extern", "namespace", "@", "if x:\n\tdef", "{" * 5000, "x " * 300, "\r", "\\\n",
])  # fmt: skip
@pytest.mark.parametrize("name", FILES)
def test_what_does_not_compile_is_compared_all_the_same(name, text):
    file = fingerprint(text, name, given(name))
    assert len(file.symbols) == len(file.lines) == len(file.written)
    assert sum(part.end - part.start for part in file.pieces) == len(file.symbols)
    passages(file, file)


# --- what counts nothing, or little ---------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
def test_the_skeleton_holds_nothing_that_a_student_wrote(name):
    text = (KIT / "assignment" / name).read_text()
    file = fingerprint(text, name, given(name))
    assert not file.written.any() and len(file.hashes) == 0
    moved = (
        similar_class.renamed_cuda(text, random.Random(1)) if name == CUDA else text + "\n" + text
    )
    assert len(fingerprint(moved, name, given(name)).hashes) == 0


@pytest.mark.parametrize("name", FILES)
def test_what_the_solution_adds_to_the_skeleton_is_what_counts(name):
    file = prints(solution())[name]
    old = set((KIT / "assignment" / name).read_text().splitlines())
    lines = file.text.split("\n")
    whole = [line for line in set(file.lines.tolist()) if file.written[file.lines == line].all()]
    assert len(whole) > 60
    assert not [lines[at - 1] for at in whole if lines[at - 1] in old and len(lines[at - 1]) > 50]


def test_the_weight_of_a_passage_falls_with_those_who_have_it():
    weights = _weights(np.array([1, 2, 3, 30, 299, 300]), 300)
    assert weights[0] == weights[1] == 1
    assert list(weights) == sorted(weights, reverse=True)
    assert weights[3] == pytest.approx(1 - np.log(15) / np.log(150))
    assert weights[-1] == pytest.approx(0.05)
    assert _weights(np.array([4]), 4)[0] > 0.6  # four of four are no custom


def test_two_short_answers_that_are_the_same_are_no_case(tmp_path):
    text = (KIT / "assignment" / PYTHON).read_text()
    raises = re.compile(r'raise NotImplementedError\("task (2\.1|1\.2) is not written yet"\)')
    short = raises.sub("return [output_grad]", text)
    longer = raises.sub("return [unbroadcast_op(output_grad, a) for a in node.inputs]", text)
    for who, python in (("a", short), ("b", short), ("c", longer), ("d", longer)):
        similar_class.write({PYTHON: python}, tmp_path / who)
    for who in ("e", "f", "g"):
        similar_class.write(similar_class.student(ord(who)), tmp_path / who)
    result = compare([tmp_path], [], FILES)
    assert result.empty == ["a", "b"]
    pair = found(result, "c", "d")
    assert pair.whole.value == 1 and pair.identical == [PYTHON]
    assert pair.says_little and pair.whole.place == 0 and pair.whole.shared < LITTLE
    assert pair.place == len([p for p in result.pairs() if not p.says_little]) + 1


# --- copies and those who wrote alone -------------------------------------------------------------


def test_copies_are_more_alike_than_any_who_wrote_alone(some_class):
    result, kinds = some_class
    alone, copies = [], {kind: [] for kind in kinds.values()}
    for pair in result.pairs():
        key = frozenset((pair.first.label, pair.second.label))
        (copies[kinds[key]] if key in kinds else alone).append(pair)
    assert len(result) == 30 * 29 / 2 and len(alone) == len(result) - 6
    assert [pair.whole.value for pair in copies["disguised"]] == [1.0, 1.0]
    assert [pair.files[CUDA].value for pair in copies["one file"]] == [1.0, 1.0]
    highest = max(pair.whole.value for pair in alone)
    assert highest < 0.8
    assert all(pair.whole.value > highest for pair in copies["reworked"])
    assert max(pair.files[CUDA].value for pair in alone) < 0.8
    found_first = {p.place for kind in ("disguised", "one file") for p in copies[kind]}
    assert found_first == {1, 2, 3, 4}
    assert all(pair.place <= 12 for pair in copies["reworked"])


def test_each_likeness_stands_beside_what_is_usual(some_class):
    result, _ = some_class
    for name in ("", *FILES):
        usual = result.usual[name]
        values = [(p.files[name] if name else p.whole).value for p in result.pairs()]
        assert usual.pairs == sum(usual.bars) == len(result)
        assert usual.median == pytest.approx(np.median(values))
        spread = 1.4826 * np.median(np.abs(np.array(values) - usual.median))
        assert usual.spread == pytest.approx(spread)
        assert usual.distance(usual.median + 2 * usual.spread) == pytest.approx(2)
    first = next(result.pairs())
    assert first.whole.distance > 3 and first.whole.place == 1


def test_places_agree_with_likeness_and_equals_share_one(some_class):
    result, _ = some_class
    for name in ("", *FILES):
        rated = [p.files[name] if name else p.whole for p in result.pairs()]
        rated = [each for each in rated if not each.says_little]
        for each in rated:
            assert each.place == 1 + sum(other.value > each.value for other in rated)


def test_mutants_of_one_solution_are_more_alike_than_solutions_of_two(tmp_path):
    for mutant in (m for m in catalogue.mutants() if m.name in ("matmul_half", "topo_recursive")):
        catalogue.write(mutant, tmp_path / mutant.name)
    similar_class.write(solution(), tmp_path / "solution")
    classic = KIT / "tests/submissions/classic"
    similar_class.write({n: (classic / n).read_text() for n in FILES}, tmp_path / "classic")
    similar_class.write(similar_class.student(7), tmp_path / "student")
    result = compare([tmp_path], [], FILES)
    mutants = (
        found(result, "solution", "matmul_half"),
        found(result, "matmul_half", "topo_recursive"),
    )
    others = [p for p in result.pairs() if {p.first.label, p.second.label} & {"classic", "student"}]
    assert min(pair.whole.value for pair in mutants) > 0.85
    assert max(pair.whole.value for pair in others) < 0.2


# --- who is compared with whom --------------------------------------------------------------------


def test_identical_files_are_told_unless_they_are_the_skeletons(tmp_path):
    files = similar_class.student(1)
    bare = (KIT / "assignment" / PYTHON).read_text()
    similar_class.write(files, tmp_path / "a")
    similar_class.write(files, tmp_path / "b")
    similar_class.write({**files, PYTHON: bare}, tmp_path / "c")
    similar_class.write({**files, PYTHON: bare}, tmp_path / "d")
    result = compare([tmp_path], [], FILES)
    assert found(result, "a", "b").identical == list(FILES)
    assert found(result, "c", "d").identical == [CUDA]
    assert found(result, "c", "d").whole.distance is None, "6 pairs tell nothing of what is usual"


def test_students_who_share_a_source_are_one_submission(tmp_path):
    sources = [similar_class.write(similar_class.student(i), tmp_path / f"in/{i}") for i in (1, 2)]
    book = Classbook(tmp_path / "out", "t", "default", "r", 1.0, "emulated", "auto", "in", "", [])
    for number, source in ((1, sources[0]), (2, sources[0]), (3, sources[1]), (4, "")):
        book.entries.append(Entry(str(number), f"f{number}", f"Name {number}", source=str(source)))
    book.write()
    result = compare([tmp_path / "out"], [], FILES)
    (pair,) = result.pairs()
    assert {pair.first.label, pair.second.label} == {"Name 1 (1), Name 2 (2)", "Name 3 (3)"}
    twice = compare([tmp_path / "out", tmp_path / "in"], [tmp_path / "in"], FILES)
    assert [work.label for work in twice.works] == [work.label for work in result.works]


def test_earlier_years_are_not_compared_among_themselves(tmp_path):
    for place, seed in (("now/ann", 1), ("now/bob", 2), ("2024/cem", 3), ("2025/bob", 2)):
        similar_class.write(similar_class.student(seed), tmp_path / place)
    result = compare([tmp_path / "now"], [tmp_path / "2024", tmp_path / "2025"], FILES)
    pairs = {(p.first.label, p.second.label, p.second.year): p for p in result.pairs()}
    assert set(pairs) == {
        ("ann", "bob", ""), ("ann", "cem", "2024"), ("bob", "cem", "2024"), ("ann", "bob", "2025"),
        ("bob", "bob", "2025"),
    }  # fmt: skip
    assert [key for key, pair in pairs.items() if pair.same_student] == [("bob", "bob", "2025")]
    assert pairs["bob", "bob", "2025"].whole.value == 1
    assert result.usual[""].pairs == 1


def test_what_cannot_be_read_is_told_and_the_others_are_compared(tmp_path):
    for seed in (1, 2):
        similar_class.write(similar_class.student(seed), tmp_path / f"s{seed}")
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as file:
        for name, text in similar_class.student(3).items():
            file.writestr(f"work/{name}", text)
    (tmp_path / "broken.zip").write_bytes(b"PK\3\4 no archive")
    (tmp_path / "empty").mkdir()
    (tmp_path / "link/src").mkdir(parents=True)
    (tmp_path / "link/src/gpu_op.cu").symlink_to("/etc/passwd")
    (tmp_path / "metadata.yml").write_text("x: 1\n")
    shutil.copytree(KIT / "assignment", tmp_path / "untouched")
    result = compare([tmp_path], [], FILES)
    assert [work.label for work in result.works] == ["packed.zip", "s1", "s2"]
    assert [who for who, _ in result.unreadable] == ["broken.zip", "empty", "link"]
    assert all(why for _, why in result.unreadable)
    assert result.empty == ["untouched"]
    assert "metadata.yml" in result.notes[0]
    text = to_html(result)
    assert "Not compared: broken.zip" in text and "untouched" in text


def test_a_giant_file_is_compared_in_part_and_that_is_told(tmp_path):
    files = similar_class.student(1)
    similar_class.write(files, tmp_path / "a")
    giant = files[CUDA] + "int x = 1 + 2;\n" * (MOST_TOKENS // 7)
    similar_class.write({**files, CUDA: giant}, tmp_path / "b")
    blank = files[CUDA] + "\n" * (1 << 19)
    similar_class.write({**files, CUDA: blank}, tmp_path / "c")
    result = compare([tmp_path], [], FILES)
    assert [note.partition(":")[0] for note in result.notes] == ["b", "c"]
    assert found(result, "a", "c").whole.value == 1


# --- passages and the page ------------------------------------------------------------------------


def test_passages_are_the_same_on_both_sides_and_use_no_token_twice():
    files = similar_class.student(5)
    one, two = prints(files), prints(similar_class.edited(files, 5))
    for name in FILES:
        shared, first, second = passages(one[name], two[name]), [], []
        for p in shared:
            left = one[name].symbols[p.first : p.first + p.length]
            assert left == two[name].symbols[p.second : p.second + p.length] and p.length >= K
            first += range(p.first, p.first + p.length)
            second += range(p.second, p.second + p.length)
        assert len(set(first)) == len(first) and len(set(second)) == len(second)
        assert one[name].written[first].all() and two[name].written[second].all()
        assert len(first) > 0.5 * one[name].written.sum()


def test_shares_tell_who_has_all_of_the_others_work():
    whole = prints(similar_class.student(5))[CUDA]
    half = fingerprint(whole.text[: len(whole.text) // 2], CUDA, given(CUDA))
    shares = copied_shares(half, whole)
    assert shares[0] > 0.95 and 0.3 < shares[1] < 0.8


def test_a_pair_shows_lines_as_they_stand_with_the_same_marks_on_both_sides(some_class):
    result, _ = some_class
    shown = view(result, next(result.pairs()))
    assert shown.blocks and len(shown.blocks) <= MOST_BLOCKS and shown.more > 0
    tasks = {block.task for block in shown.blocks}
    assert tasks & {"2.5", "2.10", "2.13", "2.2", "1.6"}
    for block in shown.blocks:
        for lines, work in ((block.left, shown.pair.first), (block.right, shown.pair.second)):
            text = work.files[block.file].text.split("\n")
            assert [line.text for line in lines] == [text[at.number - 1].rstrip() for at in lines]
            assert len(lines) <= MOST_LINES
        if not block.cut:
            assert {line.mark for line in block.left} == {line.mark for line in block.right}
        assert 2 <= block.owners <= 30


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text += data


def test_the_page_says_first_that_it_is_no_verdict_and_shows_the_top_alone(some_class):
    result, _ = some_class
    text = to_html(result, top=3)
    page = Page(text)
    assert page.text.index("This is a measure, never a verdict.") < page.text.index("The pairs")
    assert page.tags.count("details") == 3
    assert len(text.encode()) < 300_000
    assert len(to_html(result, top=6).encode()) < 600_000


def test_hostile_names_and_code_make_no_element_no_formula_and_no_control(tmp_path):
    name = HOSTILE.replace("\0", "").replace("/", "|").encode("utf-8", "replace").decode()[:120]
    files = similar_class.student(1)
    files[CUDA] = files[CUDA].replace(
        "return launched(", 'x = "</div><script>1</script>"; /* \u202e <b> */ return launched('
    )
    for who in (name, "=cmd()", "+1", "@x", "-2", "\tx"):
        similar_class.write(files, tmp_path / who)
    result = compare([tmp_path], [], FILES)
    text = to_html(result)
    page = Page(text)
    assert not {"script", "img", "link", "iframe", "b\u202e"} & set(page.tags)
    assert not [key for key, _ in page.attributes if key.startswith("on") or key == "src"]
    assert "default-src 'none'" in dict(page.attributes)["content"] or "default-src" in text
    assert "<script>1" in page.text and "\u202e" not in text
    assert not any(ord(c) < 32 and c not in "\n\t" for c in text)
    rows = list(csv.reader(io.StringIO(to_csv(result))))
    assert len(rows) == 16
    assert not any(cell[:1] in tuple("=+@\t\r") for row in rows[1:] for cell in row[1:4])
    assert {len(row) for row in rows} == {len(rows[0])}
    assert len(json.loads(to_json(result))["pairs"]) == 15


# --- the command ----------------------------------------------------------------------------------


def test_the_command_writes_page_json_and_csv(tmp_path, capsys):
    for seed in (1, 2, 3):
        similar_class.write(similar_class.student(seed), tmp_path / f"in/s{seed}")
    copy = similar_class.disguised(similar_class.student(1), 9)
    similar_class.write(copy, tmp_path / "in/s4")
    out = [tmp_path / f"out/p.{kind}" for kind in ("html", "json", "csv")]
    arguments = [str(tmp_path / "in"), "--html", str(out[0]), "--json", str(out[1])]
    assert main.main(["similarity", *arguments, "--csv", str(out[2]), "--at-least", "90"]) == 0
    said = capsys.readouterr().out
    assert "never a verdict" in said and "4 submissions, 6 pairs" in said and "100%" in said
    values = json.loads(out[1].read_text())
    first, *others = values["pairs"]
    assert (first["first"], first["second"]) == (["s1"], ["s4"]) and first["stands_out"]
    assert all(max(f["likeness"] for f in p["functions"]) >= 0.9 for p in others)
    assert values["pairs_compared"] == 6 and values["pairs"][0]["likeness"] == 1
    assert out[2].read_text().splitlines()[1].startswith("1,s1,s4,,1.0,,")
    assert Page(out[0].read_text()).tags.count("details") == 1 + len(others)


def test_the_command_refuses_what_it_cannot_use(tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    similar_class.write(similar_class.student(1), tmp_path / "one/s1")
    cases = {
        "is not a folder": [str(tmp_path / "nowhere")],
        "holds neither folders nor archives": [str(tmp_path / "empty")],
        "too few": [str(tmp_path / "one")],
        "is a folder": [str(tmp_path / "one"), "--html", str(tmp_path)],
        "would be lost": [str(tmp_path / "one"), "--csv", str(tmp_path / "one/class.json")],
        "no rubric": [str(tmp_path / "one"), "--profile", "other"],
    }
    for words, arguments in cases.items():
        assert main.main(["similarity", *arguments]) == 2
        assert words in capsys.readouterr().err
    for wrong in (["--top", "0"], ["--top", "x"], ["--at-least", "101"], ["--at-least", "nan"]):
        with pytest.raises(SystemExit) as caught:
            main.main(["similarity", str(tmp_path), *wrong])
        assert caught.value.code == 2


def test_without_copydetect_the_command_says_what_to_install(tmp_path, capsys, monkeypatch):
    similar_class.write(similar_class.student(1), tmp_path / "s1")
    monkeypatch.setitem(sys.modules, "copydetect", None)
    assert main.main(["similarity", str(tmp_path)]) == 2
    assert (
        "hint: .venv/bin/python -m pip install 'dlsys-kit[similarity]'" in capsys.readouterr().err
    )


def test_figures_do_not_depend_on_the_hashes_of_the_process(tmp_path):
    for seed in (1, 2, 3):
        similar_class.write(similar_class.student(seed), tmp_path / f"in/s{seed}")
    texts = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(KIT)}
        out = tmp_path / f"{seed}.json"
        subprocess.run(
            [sys.executable, "-m", "grader", "similarity", tmp_path / "in", "--json", out],
            env=environment, check=True, capture_output=True,
        )  # fmt: skip
        texts.add(out.read_text())
    assert len(texts) == 1
