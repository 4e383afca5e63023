"""The cases of the kernels tell right from nearly right, and a trial sees what a kernel leaves."""

import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from grader.checks import kernels
from grader.checks.harness.child import ChildContext
from grader.checks.harness.compare import Failure, verify
from grader.checks.harness.device import Device, Guarded
from grader.checks.harness.kernel_case import _Trial
from grader.checks.registry import CHECKS
from grader.course.rubric import load_rubric

PUBLISHED = {
    "array_set": (500, 200),
    "broadcast_to": (200, 300),
    "reduce_sum_axis_zero": (500, 200, 100),
    "matrix_elementwise_add": (500, 200),
    "matrix_elementwise_add_by_const": (2000, 3000),
    "matrix_elementwise_multiply": (500, 200),
    "matrix_elementwise_multiply_by_const": (2000, 3000),
    "matrix_multiply": (500, 700),
    "relu": (2000, 2500),
    "relu_gradient": (2000, 2500),
    "softmax": (400, 1000),
    "softmax_cross_entropy": (400, 1000),
}

PROFILES = ("default", "classic")
SCALAR = "matrix_elementwise_"


def cases(check, profile, seed="1"):
    """(arguments, expected, bound, judge) of every case of a check."""
    context = ChildContext(Path(), load_rubric(profile), "emulated", seed, check, 1)
    for case in CHECKS[check].__wrapped__(context):
        args = case.draw()
        expected, bound = case.judge(*args)
        yield args, np.asarray(expected), bound, case.judge


def rounded(value, kind):
    """A value in half precision, in the format of tensor cores (tf32), or as it is."""
    if isinstance(value, bool):
        return value
    values = np.asarray(value, np.float32)
    if kind == "half":
        values = values.astype(np.float16).astype(np.float32)
    else:
        values = (values.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    return values if isinstance(value, np.ndarray) else float(values)


def accepts(got, expected, bound):
    try:
        verify(np.asarray(got, np.float32), expected, bound, "call")
    except Failure:
        return False
    return True


def trial_of(check, seed="1"):
    """The first trial of a check, over a device that is not there."""
    context = ChildContext(Path(), load_rubric("default"), "emulated", seed, check, 1)
    case = next(CHECKS[check].__wrapped__(context))
    return _Trial(context, SimpleNamespace(remote=NoDevice()), case)


@pytest.mark.parametrize("kind", ["half", "tf32"])
@pytest.mark.parametrize("check", kernels.CHECKS)
def test_a_published_size_is_out_of_tolerance_in_less_precision(check, kind):
    seen = 0
    for args, expected, bound, judge in cases(check, "classic"):
        if args[0].shape != PUBLISHED[check]:
            continue
        seen += 1
        assert accepts(expected, expected, bound)
        assert not accepts(judge(*[rounded(a, kind) for a in args])[0], expected, bound)
        assert not accepts(rounded(expected, kind), expected, bound)
    assert seen == 1


@pytest.mark.parametrize("check", kernels.CHECKS)
def test_most_odd_sizes_are_out_of_tolerance_in_half_precision(check):
    verdicts = [
        accepts(judge(*[rounded(a, "half") for a in args])[0], expected, bound)
        for args, expected, bound, judge in cases(check, "default")
        if expected.size < 100_000
    ]
    assert sum(verdicts) <= len(verdicts) / 2


@pytest.mark.parametrize("check", kernels.CHECKS)
def test_zeros_are_out_of_tolerance_by_far(check):
    """Except where zero is right, as the cross-entropy of a single class, an array set to 0 or
    times 0, or nothing is asked."""
    for args, expected, bound, _ in cases(check, "default"):
        if (check == "softmax_cross_entropy" and args[0].shape[1] == 1) or not expected.size:
            continue
        if check in ("array_set", "matrix_elementwise_multiply_by_const") and args[-1] == 0:
            assert not expected.any()
            continue
        assert np.nanmax(np.abs(expected)) > 100 * np.max(bound)


def by_the_first(x):
    """Softmax in float32 that subtracts the first element of a row."""
    with np.errstate(over="ignore", invalid="ignore"):
        powers = np.exp(x - x[:, :1])
        return powers / powers.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("check", "profile", "wrong"),
    [
        *[("relu", profile, lambda x: np.clip(x, 0, 1)) for profile in PROFILES],
        *[(f"{SCALAR}add_by_const", profile, lambda x, c: abs(x) + c) for profile in PROFILES],
        *[(f"{SCALAR}multiply_by_const", profile, lambda x, c: abs(x) * c) for profile in PROFILES],
        ("softmax", "default", by_the_first),
    ],
)
def test_what_is_right_on_tame_inputs_alone_shows_whatever_the_seed(check, profile, wrong):
    """Both signs, numbers far above 1 and rows that are spread are always there, not by luck."""
    for seed in range(20):
        context = ChildContext(Path(), load_rubric(profile), "emulated", str(seed), check, 1)
        small = (
            case for case in CHECKS[check].__wrapped__(context) if np.prod(case.out or 1) < 400_000
        )
        drawn = ((case.draw(), case.judge) for case in small)
        assert any(not accepts(wrong(*args), *judge(*args)) for args, judge in drawn), seed


@pytest.mark.parametrize("check", kernels.CHECKS)
def test_sizes_of_a_run_are_of_that_run_alone(check):
    first, second = (
        {tuple(a.shape for a in args if isinstance(a, np.ndarray)) for args, *_ in made}
        for made in (cases(check, "classic", "1"), cases(check, "classic", "2"))
    )
    assert first & second
    assert first - second
    assert second - first


@pytest.mark.parametrize("profile", ["classic", "default"])
def test_products_are_asked_for_with_all_four_pairs_of_flags(profile):
    flags = [(args[1], args[3]) for args, *_ in cases("matrix_multiply", profile)]
    assert set(flags) == {(a, b) for a in (False, True) for b in (False, True)}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("check", "outputs"),
    [
        ("array_set", 1024 * 1024),
        ("broadcast_to", 1024 * 1024),
        ("reduce_sum_axis_zero", 128 * 256),
        ("matrix_elementwise_add", 1024 * 1024),
        ("matrix_elementwise_multiply", 1024 * 1024),
        ("matrix_multiply", 256 * 32 * 32),
        ("relu", 1024 * 1024),
    ],
)
def test_a_grid_of_a_round_number_of_blocks_is_too_small_once(check, outputs, seed):
    context = ChildContext(Path(), load_rubric("default"), "emulated", str(seed), check, 1)
    cases = CHECKS[check].__wrapped__(context)
    shapes = [case.out or case.draw()[case.overwrites].shape for case in cases]
    assert max(np.prod(shape) for shape in shapes) > outputs


@pytest.mark.parametrize("check", ["softmax", "reduce_sum_axis_zero"])
def test_rows_are_more_than_8192_once(check):
    context = ChildContext(Path(), load_rubric("default"), "emulated", "1", check, 1)
    drawn = [case.draw() for case in CHECKS[check].__wrapped__(context)]
    assert max(len(args[0]) for args in drawn) > 8192


def test_a_large_product_has_little_to_sum():
    """A block of threads for each element is an honest style, and slow on the emulated GPU."""
    drawn = list(cases("matrix_multiply", "default"))
    (large,) = [args for args, expected, *_ in drawn if expected.size > 100_000]
    assert large[0].shape[0 if large[1] else 1] < 10


@pytest.mark.parametrize("seed", ["1", "2", "3"])
@pytest.mark.parametrize("check", [name for name in PUBLISHED if name != "matrix_multiply"])
def test_large_inputs_end_where_their_memory_does(check, seed):
    """There a page begins that nobody may touch, and blocks of 128 threads have some left over."""
    sizes = [
        max(arg.size for arg in args if isinstance(arg, np.ndarray))
        for args, *_ in cases(check, "default", seed)
    ]
    assert [size for size in sizes if size % 128 == 64 and size > 0.8 * max(sizes)]


@pytest.mark.parametrize("seed", ["1", "2", "3"])
def test_each_size_of_a_product_is_once_large_with_factors_that_fill_their_memory(seed):
    found = set()
    for (a, trans_a, b, trans_b), *_ in cases("matrix_multiply", "default", seed):
        (m, k), n = a.T.shape if trans_a else a.shape, b.shape[0 if trans_b else 1]
        if a.size % 64 == b.size % 64 == 0:
            found |= {name for name, size in zip("mnk", (m, n, k), strict=True) if size > 2500}
    assert found == set("mnk")


@pytest.mark.parametrize(("flips", "names"), [((0, 1), "B"), ((1, 0), "A"), ((1, 1), "A and of B")])
def test_a_product_for_other_flags_is_recognised(flips, names):
    random = np.random.default_rng(6)
    a, b = random.normal(size=(5, 4)), random.normal(size=(3, 4))
    right, bound = kernels._product(a, False, b, True)
    other_a = a.reshape(4, 5).T if flips[0] else a
    other_b = b.reshape(4, 3) if flips[1] else b.T
    hint = kernels._flag_ignored(other_a @ other_b, bound, a, False, b, True)
    assert hint.endswith(f"flag of {names}")
    assert kernels._flag_ignored(right + 1, bound, a, False, b, True) == ""
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # on the terminal of whoever grades
        assert kernels._flag_ignored(right * np.nan, bound, a, False, b, True) == ""


class NoDevice:
    """Stands in for the child, where only what happens in the parent is looked at."""

    def __getattr__(self, name):
        return self

    def __call__(self, *args, **kwargs):
        return self

    def __add__(self, other):
        return self

    def __getitem__(self, key):
        return self


@pytest.mark.parametrize("check", ["relu", "relu_gradient", "matrix_multiply", "softmax"])
def test_a_change_of_one_element_shows_in_the_output(check):
    for seed in range(20):
        trial = trial_of(check, str(seed))
        first, former = trial.expected, trial.values
        assert trial._change_one()
        assert not accepts(first, trial.expected, trial.bound)
        assert sum((former[n] != v).sum() for n, v in trial.values.items()) == 1
        for arg, letter in zip(trial.args, trial.letters, strict=True):
            assert letter == "" or np.array_equal(arg, trial.values[letter])


def test_where_no_element_shows_in_the_output_all_is_drawn_anew():
    assert not trial_of("array_set")._change_one()


@pytest.fixture
def guarded():
    return Guarded(NoDevice(), (3, 5), np.random.default_rng(1))


def test_zones_are_new_for_every_filling_and_keep_the_alignment(guarded):
    values = np.arange(15, dtype=np.float32)
    first, second = guarded.surround(values), guarded.surround(values)
    assert guarded.front % 64 == 0
    assert np.array_equal(guarded.inside(first, "call"), values.reshape(3, 5))
    assert (first[: guarded.front] != second[: guarded.front]).all()
    assert len(first) - guarded.front - 15 >= 2048


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (-1, "1 element before its output, the nearest 1 away"),
        (-9, "1 element before its output, the nearest 9 away"),
        (15, "1 element past the end of its output, the nearest 1 away"),
        (40, "1 element past the end of its output, the nearest 26 away"),
    ],
)
@pytest.mark.parametrize("written", [0, np.nan, -0.0])
def test_a_changed_element_of_a_zone_is_found(guarded, place, words, written):
    before = guarded.surround(np.zeros(15, np.float32))
    guarded.require_intact(before.copy(), before, "call")
    after = before.copy()
    after[guarded.front + place] = written
    with pytest.raises(Failure, match=words):
        guarded.require_intact(after, before, "call")


@pytest.mark.parametrize("reply", [None, 0.0, np.zeros(3, np.float32), np.zeros(9999)])
def test_memory_of_another_size_or_type_is_no_output(guarded, reply):
    with pytest.raises(Failure, match="did not return"):
        guarded.inside(reply, "call")


@pytest.mark.parametrize("code", [-1, 700, None, False, 0.0, "0", np.int64(0)])
def test_only_the_number_zero_says_that_the_device_has_no_error(code):
    device = Device(NoDevice())
    device.require_clean(0, "call")
    with pytest.raises(Failure, match="call leaves a CUDA error unread: no message"):
        device.require_clean(code, "call")


def test_an_array_for_a_tool_that_looks_at_every_access_has_no_zones():
    guarded = Guarded(NoDevice(), (3, 5), np.random.default_rng(1), zones=False)
    assert guarded.surround(np.zeros(15, np.float32)).shape == (15,)
