"""Part 2: the kernels, against numpy, within bounds computed from the arithmetic.

Each test is a check of the grader's.
"""

from .checks import check


def test_array_set():
    # array_set fills arrays of any size and rank
    check("array_set")


def test_broadcast_to():
    # broadcast_to tiles its input along a new first axis, for any size and rank
    check("broadcast_to")


def test_reduce_sum_axis_zero():
    # reduce_sum_axis_zero sums every row, for odd sizes too; a vector sums to shape (1,)
    check("reduce_sum_axis_zero")


def test_matrix_elementwise_add():
    # matrix_elementwise_add adds arrays of any shape, also in place
    check("matrix_elementwise_add")


def test_matrix_elementwise_add_by_const():
    # matrix_elementwise_add_by_const adds a number to arrays of any shape, also in place
    check("matrix_elementwise_add_by_const")


def test_matrix_elementwise_multiply():
    # matrix_elementwise_multiply multiplies arrays of any shape, also in place
    check("matrix_elementwise_multiply")


def test_matrix_elementwise_multiply_by_const():
    # matrix_elementwise_multiply_by_const scales arrays of any shape, also in place
    check("matrix_elementwise_multiply_by_const")


def test_matrix_multiply():
    # matrix_multiply is right for every transpose, and for sizes that no tile divides
    check("matrix_multiply")


def test_relu():
    # relu keeps what is positive and makes the rest 0, for any shape, also in place
    check("relu")


def test_relu_gradient():
    # relu_gradient passes the gradient where the input is positive; at 0 it is 0
    check("relu_gradient")


def test_softmax():
    # softmax works on each row of a matrix, for any number of rows, without overflow
    check("softmax")


def test_softmax_cross_entropy():
    # softmax_cross_entropy is the mean over rows, for any number of rows
    check("softmax_cross_entropy")
