"""Products read transposed matrices as they lie."""

from dlsys import autodiff
from dlsys.ops import linear, movement

from ..graph import Report, rewired


def into_products(graph):
    """Transposes of the last two axes become the flags of the product that reads them.

        before                              after
        a = transpose(w)                    y = matmul(x, w, trans_b=True)
        y = matmul(x, a)

    On numpy they stay: there a transpose is a copy, and BLAS may add in another order where it
    reads one that is none.
    """
    report = Report("transposes put into products")

    def flagged(node):
        for number, flag in _flags(node):
            source = node.inputs[number]
            if not _exchanges_last(graph, source):
                continue
            if graph.ctx is None:
                report.leave("on numpy other bits may come of it", source.name)
                continue
            inputs = list(node.inputs)
            inputs[number] = source.inputs[0]
            made = _flipped(rewired(node, inputs), flag)
            if graph.fits(node, made):
                report.changed.append(source.name)
                node = made
            else:
                report.leave("the product would lie elsewhere", source.name)
        return node

    graph.rewrite(flagged)
    return report


def _flags(node):
    """(input, flag) of each operand that a product may read transposed."""
    if isinstance(node.op, autodiff.MatMulOp):
        return ((0, "matmul_attr_trans_A"), (1, "matmul_attr_trans_B"))
    if isinstance(node.op, linear.ProductOp):
        return ((0, "trans_a"), (1, "trans_b"))
    if isinstance(node.op, linear.ProductGradientOp):
        return ((0, "trans_a"),) if node.attributes["of"] else ((1, "trans_b"),)
    return ()


def _exchanges_last(graph, node):
    if not isinstance(node.op, movement.TransposeOp):
        return False
    rank = len(graph.facts(node)[0])
    return rank >= 2 and node.op.order(node, rank) == (*range(rank - 2), rank - 1, rank - 2)


def _flipped(node, flag):
    if hasattr(node, flag):
        setattr(node, flag, getattr(node, flag) is not True)
    else:
        node.attributes = {**node.attributes, flag: not node.attributes[flag]}
    return node
