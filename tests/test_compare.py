"""Tolerances accept honest float32, reject half precision, and name patterns."""

import numpy as np
import pytest

from grader.checks.compare import ROUND, Failure, pattern, sum_bound, verify


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
        (lambda x: x * 8, "every element is 8 times"),
        (lambda x: x + 3, "too large by 3"),
    ],
)
def test_known_patterns_get_a_hint(change, words):
    expected = values(5, 8, 5).astype(np.float64)
    got = np.array(change(expected))
    assert words in pattern(got, expected, got != expected)


def test_a_transposed_square_is_recognised():
    expected = values(6, 5, 5).astype(np.float64)
    assert "transposed" in pattern(expected.T.copy(), expected, expected != expected.T)
