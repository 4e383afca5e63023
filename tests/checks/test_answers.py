"""Whatever the child answers, a check passes or fails; it never breaks off."""

import dataclasses
import os
import random
import types
from pathlib import Path

import numpy as np
import pytest

import catalogue
from grader.building.tree import child_environment
from grader.checks.harness.answers import (
    plain,
    require_int,
    require_number,
    room,
    shape_of,
    shown,
)
from grader.checks.harness.child import ChildContext
from grader.checks.harness.compare import Failure, require_array
from grader.checks.harness.traits import traits_of
from grader.checks.registry import CHECKS
from grader.course.rubric import load_rubric
from grader.grading import runner
from grader.grading.prebuilt import reference
from grader.grading.runner import Options, grade
from grader.report.audience import student_view
from grader.report.model import ERROR, FAIL, PASS
from grader.student.remote import ChildError, Opaque, Remote

pytestmark = pytest.mark.usefixtures("same_builds")

OFF_DEVICE = sorted(name for name, each in CHECKS.items() if not traits_of(each).device)
KIT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("DLSYS_DATA") or KIT.parent / "shared" / "data" / "mnist")

ODD = [
    None, True, ..., -1, 7, 10**1000, 1.5, float("nan"), float("inf"), "", "text", b"", b"\xff",
    [], [1], (), (1, "x"), [None] * 5, {}, {"a": 1}, {1: [2]}, Opaque("Odd", "<odd>"),
    np.zeros(0), np.zeros(()), np.zeros((2, 3, 4)), np.zeros((700, 1, 1)), np.ones(3, np.int64),
    np.array(True), np.float32(1), np.int64(3), np.full((1, 1), np.nan), [np.zeros(3)] * 2,
    (np.zeros((2, 2)), 3), [[np.ones(2)]], ("a", b"b", None),
]  # fmt: skip


def distorted(answer, lots):
    """Another answer: all of it, an item, or an array of the same shape with other contents."""
    if isinstance(answer, (list, tuple)) and answer and lots.random() < 0.7:
        place = lots.randrange(len(answer))
        changed = [*answer[:place], distorted(answer[place], lots), *answer[place + 1 :]]
        return changed if isinstance(answer, list) else tuple(changed)
    if isinstance(answer, np.ndarray) and lots.random() < 0.5:
        kinds = (np.float16, np.float64, np.int32, bool)
        ways = [np.full_like(answer, np.nan, dtype=np.float32), answer.T.copy(), answer[None],
                *(np.nan_to_num(answer).astype(kind) for kind in kinds), answer.ravel()[:0],
                np.full(answer.shape, np.inf), np.full(answer.shape, 3e38)]  # fmt: skip
        return lots.choice(ways)
    return lots.choice(ODD)


def short_trainings(rubric):
    """The rubric with trainings of two batches, twice, whatever accuracy they reach."""
    less = {"epochs": 2, "logreg_accuracy": 0.0, "mlp_accuracy": 0.0}
    rows = {name: row for name, row in rubric.mnist.items() if isinstance(row, dict)}
    short = {
        name: {**row, **less, "train": 2 * row["batch"], "valid": row["batch"]}
        for name, row in rows.items()
    }
    return dataclasses.replace(rubric, mnist={**rubric.mnist, **short})


def broken(check, tree, seed, lots, monkeypatch, count):
    """Runs a check with one answer of `count` distorted; returns how many there are."""
    asked, chosen, original = 0, lots.randrange(count), Remote.fetch

    def fetch(self, *args, **more):
        nonlocal asked
        answer, asked = original(self, *args, **more), asked + 1
        return distorted(answer, lots) if asked - 1 == chosen else answer

    rubric = short_trainings(load_rubric("default"))
    context = ChildContext(tree=tree, rubric=rubric, backend="emulated", seed=seed, check=check,
                      seconds=120, data=DATA if DATA.is_dir() else None,
                      env=child_environment("emulated"))  # fmt: skip
    context.watched = traits_of(CHECKS[check]).device  # small sizes are enough
    with monkeypatch.context() as patch:
        patch.setattr(Remote, "fetch", fetch)
        try:
            CHECKS[check](context)
        except (Failure, ChildError) as error:
            assert asked > chosen, f"the reference fails: {error}"
            assert len(str(error)) < 3000
    return asked


@pytest.fixture(scope="module")
def built():
    with reference("emulated") as tree:
        yield tree


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("check", [*OFF_DEVICE, "memory_plan", "mnist_gpu", "relu",
                                   "matrix_multiply", "softmax_cross_entropy"])  # fmt: skip
def test_no_answer_breaks_a_check(check, built, monkeypatch, many):
    lots = random.Random(check)
    count = broken(check, built, "5eed", lots, monkeypatch, 1 << 40)
    for _ in range(many(6, 2) if "mnist" in check else many(20, 4)):
        broken(check, built, "5eed", lots, monkeypatch, count)


# --- what is made of it ---------------------------------------------------------------------------


@pytest.mark.parametrize("value", [v for v in ODD if not isinstance(v, (list, tuple))], ids=repr)
def test_what_is_no_shape_is_none(value):
    assert shape_of(value) is None


def test_a_shape_is_a_list_or_tuple_of_ints():
    assert shape_of([3, np.int64(4)]) == shape_of((3, 4)) == (3, 4)
    assert shape_of(()) == ()
    assert shape_of([1.0]) is None and shape_of([np.ones(2), 1]) is None
    assert shape_of([1] * 64) == (1,) * 64
    assert shape_of([1] * 65) is None


def test_numpys_integers_are_plain_ones():
    found = plain((np.int64(3), [np.array([1, 2]), np.zeros(0)], np.zeros((2, 0), np.uint8)))
    assert found == [3, [[1, 2], []], [[], []]] and type(found[0]) is int
    for value in (True, 1.0, "1", None):
        assert plain([value])[0] is value


def test_answers_are_told_in_few_characters():
    assert len(shown("x" * 9999)) == 80 and len(shown([10**1000] * 99)) == 80
    with pytest.raises(Failure, match="the size is True, expected an int"):
        require_int(True, "the size")
    assert shown(Opaque("Odd", "<odd>")) == "Odd <odd>"
    assert shown("pass\n\r\npass") == "pass  pass"
    with pytest.raises(Failure, match=r"^a call returned no array but Odd <odd>$"):
        require_array(Opaque("Odd", "<odd>"), (2,), "a call")
    with pytest.raises(Failure, match=r"^a call returned no array of floats but ndarray array"):
        require_array(Opaque("ndarray", "array([1], dtype=object)"), (2,), "a call")
    for value in (None, np.zeros(2), np.ones(1, int), np.zeros(0), 1.0):
        with pytest.raises(Failure, match=r"^the loss "):
            require_number(value, "the loss")
    assert require_number(np.array([1.5], np.float32), "the loss") == 1.5
    assert room([np.zeros(1000)]) == (1 << 20) + 8000


# --- where a check breaks off all the same --------------------------------------------------------

OTHER = catalogue.Mutant("other", "", "topological_order", (), (
    ("python/dlsys/autodiff.py", "import numpy as np\n", "import numpy as np\n\nODD = 7\n"),
))  # fmt: skip


def looking(error):
    """A check that breaks off on what one submission answers, and not on the reference."""

    def look(context):
        """a check for tests"""
        with context.session() as session:
            odd = session.remote.builtin("getattr")(session.autodiff(), "ODD", None)
            if session.remote.fetch(odd) is not None:
                raise error

    return look


@pytest.fixture
def graded(tmp_path, monkeypatch):
    """The result of a check in place of topological_order, for a submission with something odd."""

    def grade_by(check):
        table = types.MappingProxyType({**CHECKS, "topological_order": check})
        monkeypatch.setattr(runner, "checks_of", lambda course: table)
        setup = Options(load_rubric("default"), "emulated", only=("topological_order",))
        return grade(catalogue.write(OTHER, tmp_path / "work"), setup)

    return grade_by


def test_a_check_that_breaks_off_on_this_submission_alone_fails(graded):
    report = graded(looking(TypeError("int + list\nx" + "y" * 9999)))
    (result,) = report.results
    assert (result.status, result.score) == (FAIL, 0)
    said = "the check could not read what the submission returned: TypeError: int + list"
    assert result.message.startswith(said) and len(result.message) == 3000
    assert any("Traceback" in line for line in result.details)
    assert max(map(len, result.details)) <= 1000


def test_a_student_is_not_shown_how_a_check_broke_off(graded):
    (result,) = student_view(graded(looking(KeyError("x")))).results
    assert result.status == FAIL and "KeyError" in result.message
    assert result.details == [] and result.facts == {}


def test_a_check_that_breaks_off_on_the_reference_too_is_an_error(graded):
    def check(context):
        """a check for tests"""
        raise ZeroDivisionError("division by zero")

    (result,) = graded(check).results
    assert (result.status, result.message) == (ERROR, "ZeroDivisionError: division by zero")


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), MemoryError()])
def test_a_failure_of_the_machine_is_nobody_s_fail(graded, error):
    (result,) = graded(looking(error)).results
    assert result.status == ERROR


def test_a_check_that_nobody_breaks_passes(graded):
    (result,) = graded(lambda context: None).results
    assert result.status == PASS


def test_texts_of_a_result_have_bounds():
    row = load_rubric("default").rows[1]
    result = runner.result_of(row, FAIL, message="m" * 9999, details=["d" * 9999] * 9999)
    result = runner.bounded(dataclasses.replace(result, hint="h" * 9999))
    assert (len(result.message), len(result.hint), len(result.details)) == (3000, 3000, 101)
    assert {len(line) for line in result.details} == {1000, len("[... 9899 lines left out ...]")}
