"""Softmax may be computed in any of the usual ways in float32, and in none in half precision."""

import numpy as np
import pytest

from grader.checks import kernels
from grader.checks.harness.child import ChildContext
from grader.checks.harness.compare import Failure, verify
from grader.course.rubric import load_rubric

LOG2_E, LOG_2 = np.float32(1.4426950408889634), np.float32(0.6931471805599453)


def divided(x):
    terms = np.exp(x - x.max(axis=1, keepdims=True))
    return terms / terms.sum(axis=1, keepdims=True)


def less_the_log_of_the_sum(x):
    most = x.max(axis=1, keepdims=True)
    return np.exp(x - (most + np.log(np.exp(x - most).sum(axis=1, keepdims=True))))


def by_powers_of_two(x):
    """Every operation is rounded where it lies: no product and sum are made in one."""
    most = x.max(axis=1, keepdims=True)
    total = np.exp2((x - most) * LOG2_E).sum(axis=1, keepdims=True)
    return np.exp2(x * LOG2_E - (most * LOG2_E + np.log2(total)))


def cases(tmp_path, seed):
    context = ChildContext(tmp_path, load_rubric("default"), "emulated", seed, "softmax", 10)
    for case in kernels.softmax.__wrapped__(context):
        (x,) = case.draw()
        yield x, *case.judge(x)


@pytest.mark.parametrize("way", [divided, less_the_log_of_the_sum, by_powers_of_two])
def test_float32_is_within_the_bound(tmp_path, way):
    for seed in ("0", "1", "2", "3"):
        for x, expected, bound in cases(tmp_path, seed):
            verify(way(x), expected, bound, way.__name__)


def test_half_precision_is_not(tmp_path):
    for x, expected, bound in cases(tmp_path, "5eed"):
        if expected.max() < 0.99:  # else each row is a 1 and zeros, which half precision has, too
            with pytest.raises(Failure):
                verify(expected.astype(np.float16).astype(np.float32), expected, bound, "half")
            with pytest.raises(Failure):
                verify(divided(x.astype(np.float16)).astype(np.float32), expected, bound, "half")
