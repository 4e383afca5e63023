"""The gradient of relu is masked by what relu made, so that what it was made of need not stay."""

from dlsys.autodiff import ReluGradientOp, ReluOp

from ..graph import Report, rewired


def mask_by_results(graph):
    """Gradients of relu read its result, where nothing else reads its input again.

        before                              after
        y = relu(x)                         y = relu(x)
        g = relu_gradient(x, h)             g = relu_gradient(y, h)

    y > 0 where x > 0, for NaN and -0.0 too. Most nets need y for the gradient of the next layer's
    weights: then x is never written, and a layer keeps one array instead of two.
    """
    report = Report("gradients of relu masked by its result")
    nodes = graph.nodes
    readers = {}
    for node in nodes:
        for each in node.inputs:
            readers.setdefault(each, []).append(node.op)
    kept = set(graph.results)
    before, relus = iter(nodes), {}

    def masked(node):
        """The gradient of another input; `before` has the same nodes as they were."""
        source = next(before)
        if isinstance(node.op, ReluOp):
            relus[node.inputs[0]] = node
        if not isinstance(node.op, ReluGradientOp) or node.inputs[0] not in relus:
            return None
        x, relu = source.inputs[0], relus[node.inputs[0]]
        others = [op for op in readers[x] if not isinstance(op, (ReluOp, ReluGradientOp))]
        if others or x in kept:
            report.leave("others read what relu reads", node.name)
            return None
        made = rewired(node, [relu, node.inputs[1]])
        if not graph.fits(node, made):
            report.leave("the result lies elsewhere", node.name)
            return None
        report.changed.append(node.name)
        return made

    graph.rewrite(masked)
    return report
