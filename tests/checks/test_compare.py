"""Tolerances accept honest float32, reject half precision, and name patterns."""

import numpy as np
import pytest

from grader.checks.harness.compare import ROUND, Failure, pattern, sum_bound, verify


def half(x):
    return x.astype(np.float16).astype(np.float64)


def values(seed, *shape):
    return np.random.default_rng(seed).uniform(-10, 10, shape).astype(np.float32)


@pytest.mark.parametrize("k", [7, 40, 129, 500, 1000])
def test_the_bound_of_a_sum_accepts_float32_and_rejects_half(k):
    a, b = values(1, 64, k), values(2, k, 48)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    bound = sum_bound(k, np.abs(a).astype(np.float64) @ np.abs(b))
    sequential = np.zeros(exact.shape, np.float32)
    for i in range(k):
        sequential += a[:, i : i + 1] * b[i]
    verify(sequential, exact, bound, "float32")
    with pytest.raises(Failure, match="elements differ"):
        verify((half(a) @ half(b)).astype(np.float32), exact, bound, "half")


def test_the_bound_of_a_column_sum_rejects_half():
    x = values(3, 500, 200)
    exact = x.astype(np.float64).sum(axis=0)
    bound = sum_bound(500, np.abs(x.astype(np.float64)).sum(axis=0))
    verify(x.cumsum(axis=0, dtype=np.float32)[-1], exact, bound, "float32")
    with pytest.raises(Failure):
        verify(half(x).sum(axis=0).astype(np.float32), exact, bound, "half")


def test_the_bound_of_softmax_rejects_half():
    x = values(4, 33, 100) / 2
    exact = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    exact /= exact.sum(axis=1, keepdims=True)
    bound = sum_bound(100, exact) + 60 * ROUND * exact
    verify(exact.astype(np.float32), exact, bound, "float32")
    with pytest.raises(Failure):
        verify(half(exact).astype(np.float32), exact, bound, "half")


def test_nan_and_infinity_never_pass():
    expected = np.ones(3)
    for bad in (np.nan, np.inf):
        with pytest.raises(Failure):
            verify(np.array([1, bad, 1], np.float32), expected, 1e30, "call")


def test_a_message_names_the_first_element_and_both_values():
    got = np.zeros((2, 3), np.float32)
    with pytest.raises(Failure, match=r"relu: 2 of 6 .* first is \[0, 2\]: got 0, expected 5"):
        verify(got, np.array([[0, 0, 5], [0, 5, 0]]), 0, "relu")


def test_values_that_differ_in_late_digits_are_shown_with_them():
    with pytest.raises(Failure) as caught:
        verify(np.array([1.0 + 1e-12]), np.ones(1), 1e-15, "f(x)")
    assert "got 1.000000000001" in caught.value.message
    assert caught.value.message.endswith("expected 1")


def test_rows_that_all_err_a_little_are_not_called_right():
    expected = np.arange(1.0, 7).reshape(3, 2)
    with pytest.raises(Failure) as caught:
        verify(expected + 1e-9, expected, 1e-12, "f(x)")
    assert "row 0" not in caught.value.hint


def test_a_wrong_shape_is_named():
    with pytest.raises(Failure, match=r"has shape \(2,\), expected \(3,\)"):
        verify(np.zeros(2, np.float32), np.zeros(3), 0, "call")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda x: x * np.nan, "no element was written"),
        (lambda x: np.where(np.arange(40).reshape(8, 5) < 32, x, np.nan), "last partial block"),
        (lambda x: np.where(np.arange(40).reshape(8, 5) % 7 == 3, np.nan, x), "never written"),
        (lambda x: x * 0, "every element is 0"),
        (lambda x: np.broadcast_to(x[0], x.shape), "every row equals row 0"),
        (lambda x: np.where(np.arange(8)[:, None] == 0, x, -x - 1), "only row 0 is right"),
        (lambda x: np.where(np.arange(8)[:, None] == 0, x, np.nan), "only row 0 was written"),
        (lambda x: x * -2.5, "every element is -2.5 times"),
        (lambda x: x * 8, "every element is 8 times what it should be: is the mean missing, 1/8?"),
        (lambda x: x / 5, "1/5 of what it should be: is it divided by 5 twice?"),
        (lambda x: x + 3, "too large by 3"),
        (lambda x: np.roll(x, 1), "one place too late"),
        (lambda x: np.roll(x, -1), "one place too early"),
    ],
)
def test_known_patterns_get_a_hint(change, words):
    expected = values(5, 8, 5).astype(np.float64)
    got = np.array(change(expected))
    assert words in pattern(got, expected, got != expected)


@pytest.mark.parametrize(("first", "words"), [
    (768, "elements from 768 (3 times 256) on were never written"),
    (256, "elements from 256 on were never written"),
    (1000, "elements from 1000 on were never written"),
])  # fmt: skip
def test_the_blocks_before_what_was_never_written_are_counted(first, words):
    expected = values(12, 1025)
    got = np.where(np.arange(1025) < first, expected, np.float32(np.nan))
    assert pattern(got, expected, np.isnan(got)).startswith(words)


def test_only_what_is_off_by_one_number_everywhere_is_too_large_by_it():
    expected = np.linspace(0, 1, 40).reshape(8, 5)
    assert "too large by 0.01" in pattern(expected + 0.01, expected, expected < 2)
    noise = np.random.default_rng(13).uniform(0.005, 0.015, (8, 5))
    assert pattern(expected + noise, expected, expected < 2) == ""


def test_a_result_where_zeros_are_expected_is_no_factor_of_them():
    zeros = np.zeros((8, 5))
    assert pattern(zeros + 2, zeros, zeros == 0) == "every element is too large by 2"


def test_a_transposed_square_is_recognised():
    expected = values(6, 5, 5).astype(np.float64)
    assert "transposed" in pattern(expected.T.copy(), expected, expected != expected.T)


def computed_nan(shape):
    """What x86 and NVIDIA's GPUs make of 0/0, which is not what Python calls nan."""
    return np.full(shape, 0xFFC00000, np.uint32).view(np.float32)


def test_a_nan_that_was_computed_is_not_taken_for_one_left_over():
    expected = values(7, 8, 5)
    got = np.where(expected > 0, computed_nan((8, 5)), expected)
    hint = pattern(got, expected, got != expected)
    assert "the computation itself makes NaN" in hint
    assert "exp overflow" in hint
    left_over = np.full((8, 5), np.nan, np.float32)
    assert "no element was written" in pattern(left_over, expected, np.isnan(left_over))


@pytest.mark.parametrize(("shape", "tile"), [((65, 40), 32), ((33, 64), 32), ((17, 20), 16)])
def test_wrong_edges_of_tiles_are_recognised(shape, tile):
    expected = values(8, *shape)
    got = expected.copy()
    rows, columns = (size // tile * tile for size in shape)
    got[rows:] = np.linspace(1, 2, shape[1])
    got[:, columns:] *= -3
    hint = pattern(got, expected, got != expected)
    assert f"the {rows} x {columns} elements in whole tiles of {tile} are right" in hint
    assert "edges guarded" in hint


def test_errors_inside_of_tiles_are_none_of_edges():
    expected = values(9, 65, 40)
    got = expected.copy()
    got[3, 4] = got[64, 39] = 50
    assert "edges" not in pattern(got, expected, got != expected)


def test_a_factor_among_the_sizes_of_the_call_is_a_missing_mean():
    call = "gpu_op.softmax_cross_entropy((33, 31), (33, 31); out (1,))"
    with pytest.raises(Failure) as caught:
        verify(np.array([66.0]), np.array([2.0]), 1e-3, call)
    assert (
        caught.value.hint == "the result is 33 times what it should be: is the mean missing, 1/33?"
    )
    with pytest.raises(Failure) as caught:
        verify(np.array([50.0]), np.array([2.0]), 1e-3, call)
    assert caught.value.hint == ""


def test_what_is_wrong_in_no_known_way_gets_no_hint():
    expected = values(10, 70, 70)
    got = values(11, 70, 70)
    assert pattern(got, expected, got != expected) == ""


def test_two_wrong_results_are_told_apart():
    results = []
    for wrong in (3.0, 3.0, 4.0):
        with pytest.raises(Failure) as caught:
            verify(np.array([1.0, wrong]), np.array([1.0, 2.0]), 0, "call")
        results.append(caught.value.result)
    assert results[0] == results[1] != results[2]
