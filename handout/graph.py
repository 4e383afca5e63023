"""Prints a small network, its gradients and their memory plan as JSON, for the pictures.

Run with the folder of the package `dlsys` on the path. The plan is the executor's own; its arrays
are stand-ins that only know their size, so nothing is built and nothing is computed.
"""

import json
import sys

BATCH, INPUTS, HIDDEN, CLASSES = 1000, 784, 256, 10


class Buffer:
    """Stands in for an NDArray: a shape, and the allocation that it lies in."""

    def __init__(self, shape, number):
        self.shape, self.number = tuple(shape), number


class Allocator:
    """Numbers what is allocated."""

    def __init__(self):
        self.elements = []

    def empty(self, shape, ctx=None):
        """A new allocation; float32 is what all arrays are."""
        buffer = Buffer(shape, len(self.elements))
        size = 1
        for extent in shape:
            size *= extent
        self.elements.append(size)
        return buffer

    def view(self, base, shape):
        """The same allocation in another shape."""
        return Buffer(shape, base.number)


def network(ad):
    """(fed node -> shape, nodes to evaluate): a perceptron of one hidden layer, no biases."""
    x, y = ad.Variable(name="X"), ad.Variable(name="Y")
    w1, w2 = ad.Variable(name="W1"), ad.Variable(name="W2")
    logits = ad.matmul_op(ad.relu_op(ad.matmul_op(x, w1)), w2)
    loss = ad.softmaxcrossentropy_op(logits, y)
    feeds = {x: (BATCH, INPUTS), w1: (INPUTS, HIDDEN), w2: (HIDDEN, CLASSES), y: (BATCH, CLASSES)}
    return feeds, [loss, *ad.gradients(loss, [w1, w2])]


def described(ad, executor, feeds, allocator):
    """What the pictures need of every node, in the order of computation."""
    order = executor.topo_order
    number = {node: i for i, node in enumerate(order)}
    forward = set(ad.find_topo_sort(executor.eval_node_list[:1]))
    nodes = [
        {
            "op": type(node.op).__name__,
            "name": node.name if node in feeds else "",
            "constant": node.const_attr,
            "transposed": [
                getattr(node, "matmul_attr_trans_A", False),
                getattr(node, "matmul_attr_trans_B", False),
            ],
            "inputs": [number[i] for i in node.inputs],
            "shape": executor.node_to_shape_map[node],
            "forward": node in forward,
            "buffer": None if node in feeds else executor.node_to_arr_map[node].number,
        }
        for node in order
    ]
    evaluated = [number[node] for node in executor.eval_node_list]
    return {"nodes": nodes, "evaluated": evaluated, "elements": allocator.elements}


def main():
    """Plans, and prints."""
    from dlsys import autodiff as ad
    from dlsys import ndarray

    allocator = Allocator()
    ndarray.empty, ndarray.view = allocator.empty, allocator.view
    feeds, wanted = network(ad)
    executor = ad.Executor(wanted, ctx=ndarray.gpu(0))
    executor.infer_shape(feeds)
    executor.memory_plan(feeds)
    json.dump(described(ad, executor, feeds, allocator), sys.stdout)


if __name__ == "__main__":
    main()
