"""Part 3: what makes a training step fast. Needs neither a GPU nor anything that is built.

Each test is a check of the grader's.
"""

from .checks import check


def test_merged_nodes():
    # merge_equal leaves each value once, and keeps apart what may differ in a bit
    check("merged_nodes")


def test_training_step():
    # a step of training that dlsys.compile makes, on numpy, has the right losses and weights
    check("training_step")


def test_fused_elements():
    # fuse makes one kernel of instructions on the same elements, and of no others
    check("fused_elements")


def test_fused_order():
    # fuse leaves apart what a way through another instruction connects, and keeps the order
    check("fused_order")


def test_hazards():
    # needed keeps two launches apart exactly where one writes bytes that the other touches
    check("hazards")


def test_hazards_once():
    # needed leaves out what is waited for anyway, through others
    check("hazards_once")


def test_streams_of_launches():
    # assigned puts what may overlap on several streams, and names each wait between two
    check("streams_of_launches")
