"""Part 3: kernels that are fast. What they cost, `make count-kernels` says.

Each test is a check of the grader's.
"""

from .checks import check


def test_fast_matrix_multiply():
    # fast_matrix_multiply is right for sizes that no tile divides
    check("fast_matrix_multiply")


def test_fast_row_sum():
    # fast_row_sum adds up each row of a matrix, for any number of rows and columns
    check("fast_row_sum")


def test_fast_softmax():
    # fast_softmax works on each row, short or long, without overflow
    check("fast_softmax")
