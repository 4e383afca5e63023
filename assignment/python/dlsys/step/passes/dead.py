"""Values of which only the shape is read are not computed."""

import numpy as np

from dlsys import autodiff
from dlsys.ops import casting, linear, loss, movement, random, reduction
from dlsys.ops.base import TensorOp

from ..graph import Report, constant_of, origin, rewired

#: Op -> its inputs, by number, that lend their shape alone; -1 is all but the first.
_SHAPES = {
    autodiff.ZerosLikeOp: (0,),
    autodiff.OnesLikeOp: (0,),
    autodiff.BroadcastToOp: (1,),
    autodiff.UnbroadcastOp: (1,),
    casting.CastLikeOp: (1,),
    movement.ReshapeLikeOp: (1,),
    movement.PlaceOp: (1,),
    movement.PartOfWholeOp: (-1,),
    reduction.SpreadOp: (1,),
    random.BernoulliOp: (0,),
    loss.TargetsOp: (1,),
}


def drop_dead(graph):
    """Nodes whose values nobody reads leave the graph.

        before                              after
        a = exp(x * 2)                      c = unbroadcast(g, like(3, 4))
        c = unbroadcast(g, a)

    What no output and no update needs was never in the graph: this is about shapes. A stand-in has
    shape and dtype of the value, and no memory.
    """
    report = Report("dead nodes dropped")
    before, stands = graph.nodes, {}

    def lent(node):
        for number in _lending(node):
            of = node.inputs[number]
            if not (of.op.is_fed or constant_of(of) is not None or isinstance(of.op, LikeOp)):
                stands.setdefault(of, LikeOp.node(graph, of))
                node = _with_input(node, number, stands[of])
        return node

    graph.rewrite(lent)
    alive = {id(origin(node)) for node in graph.nodes}
    report.changed += [node.name for node in before if id(origin(node)) not in alive]
    for node in stands:
        if id(origin(node)) in alive:
            report.leave("read by others, not for their shape alone", node.name)
    return report


def _lending(node):
    if isinstance(node.op, linear.ProductGradientOp):
        return (node.attributes["of"],)
    numbers = _SHAPES.get(type(node.op), ())
    return range(1, len(node.inputs)) if numbers == (-1,) else numbers


def _with_input(node, number, new):
    inputs = list(node.inputs)
    inputs[number] = new
    return rewired(node, inputs)


class LikeOp(TensorOp):
    """Shape, dtype and strides of a value that nobody reads."""

    @classmethod
    def node(cls, graph, node):
        """A stand-in for a node."""
        shape, dtype, lies = graph.facts(node)
        made = cls()(shape=shape, dtype=dtype, lies=lies)
        made.name = "Like%s" % (shape,)
        return made

    def forward(self, node):
        return np.broadcast_to(np.zeros((), node.attributes["dtype"]), node.attributes["shape"])

    def lower(self, node, build):
        return build.unread(**node.attributes)

    def gradient(self, node, grad):
        return []

    def shape(self, node):
        return node.attributes["shape"]

    def infer_dtype(self, node, dtypes):
        return node.attributes["dtype"]
