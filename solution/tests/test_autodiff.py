"""Part 1: gradients on numpy. Needs neither shapes nor a GPU.

Each test is a check of the grader's.
"""

from .checks import check


def test_topological_order():
    # find_topo_sort visits depth first, inputs before what uses them, each node once
    check("topological_order")


def test_gradient_add_multiply():
    # the gradients of +, * and constants are right, also where an operand was broadcast
    check("gradient_add_multiply")


def test_gradient_matmul():
    # the gradient of matmul is right for all four combinations of transposed operands
    check("gradient_matmul")


def test_gradient_reduce_broadcast():
    # the gradients of reduce_sum_axis_zero and broadcast_to undo each other's shapes
    check("gradient_reduce_broadcast")


def test_gradient_relu_cross_entropy():
    # the gradients of relu (0 at 0) and of softmax cross-entropy (a mean, so 1/N) are right
    check("gradient_relu_cross_entropy")


def test_reverse_walk():
    # gradients adds up the contributions of every use of a value
    check("reverse_walk")
