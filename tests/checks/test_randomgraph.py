"""What the grader takes for the order and the gradients of a random graph is right."""

import numpy as np
import pytest

from grader.checks.harness.randomgraph import RandomGraph


class Dual:
    """A value and its derivatives, one for each leaf and node that is asked for."""

    def __init__(self, value, slope):
        self.value, self.slope, self.name = value, slope, ""

    def __add__(self, other):
        other = other if isinstance(other, Dual) else Dual(other, 0)
        return Dual(self.value + other.value, self.slope + other.slope)

    def __mul__(self, other):
        other = other if isinstance(other, Dual) else Dual(other, 0)
        slope = self.slope * other.value + self.value * other.slope
        return Dual(self.value * other.value, slope)


class Leaves:
    """A session whose placeholders are numbers; the derivatives are with respect to one of them."""

    def __init__(self, fed, wrt):
        self.left = [Dual(value, float(i == wrt)) for i, value in enumerate(fed)]

    def variable(self, name):
        node = self.left.pop(0)
        node.name = name
        return node


def graph(seed, fed=(0.5, -0.7, 0.9), wrt=0):
    return RandomGraph(np.random.default_rng(seed), Leaves(fed, wrt))


@pytest.mark.parametrize("seed", range(30))
def test_gradients_are_those_of_dual_numbers(seed):
    fed = np.random.default_rng(seed).uniform(-1, 1, 3)
    for wrt in range(3):
        made = graph(seed, fed, wrt)
        output = made.deepest()
        grads, bounds = made.gradients(output, [np.full((1,), value) for value in fed])
        assert abs(grads[wrt][0] - made.nodes[output].slope) <= bounds[wrt][0]
        assert bounds[wrt][0] < 1e-8


@pytest.mark.parametrize("seed", range(100))
def test_no_order_but_that_of_the_search_is_the_one_asked_for(seed):
    made = graph(seed)
    order = made.order([made.deepest()])
    assert order != sorted(order)
    for place, at in zip(order, range(len(order)), strict=True):
        assert all(order.index(each) < at for each in made.inputs(place))
    assert len(set(order)) == len(order) > 8


def test_all_nodes_have_one_name_and_some_are_used_by_none():
    unused = 0
    for seed in range(20):
        made = graph(seed)
        assert len({node.name for node in made.nodes}) == 1
        used = {each for place in range(len(made.nodes)) for each in made.inputs(place)}
        unused += len(used) < len(made.nodes) - 1
    assert unused > 10


def test_the_words_of_a_graph_tell_every_node_below():
    made = graph(4)
    words = made.words([made.deepest()])
    for place in made.order([made.deepest()]):
        assert made.name(place) in words
