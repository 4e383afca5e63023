"""What is known before the run is computed before the run."""

import numpy as np

from dlsys import ndarray
from dlsys.autodiff import Executor, Variable, find_topo_sort
from dlsys.backend.view import dense_strides
from dlsys.ops.flow import StopGradientOp

from ..graph import KnownOp, Report, constant_of

#: Larger constants would take more memory than they save time, in bytes.
_LARGEST = 1 << 20


def fold_constants(graph):
    """Computes nodes of constants alone, by the kernels that would have computed them in the run.

        before                              after
        a = constant([0, 1, 2]) * 0.1       a = known([0, 0.1, 0.2])
        b = x + exp(a)                      b = x + known([1, 1.105, 1.221])

    Random draws differ from run to run, and stay. What lies nowhere, as ones_like(x) on a device,
    is no faster as an array.
    """
    report = Report("constants folded")
    known, folded = set(), {}
    for node in graph.nodes:
        if not _is_known(node, known):
            continue
        if _is_apart(node):
            report.leave("random draws and stop points", node.name)
            continue
        known.add(node)
        reason = _why_not(graph, node)
        if reason:
            report.leave(reason, node.name)
        else:
            folded[node] = None
    read = set(graph.results)
    for node in graph.nodes:
        read.update(node.inputs if node not in folded else ())
    edges = [node for node in folded if node in read]
    for node, value in zip(edges, _values(graph, edges) if edges else ()):
        folded[node] = KnownOp.node(value, "Known(%s)" % node.name)
        report.changed.append(node.name)
    graph.rewrite(folded.get)
    return report


def _is_known(node, known):
    if constant_of(node) is not None or node.op.is_fed or not node.inputs:
        return False
    return all(each in known or constant_of(each) is not None for each in node.inputs)


def _is_apart(node):
    is_stop = "inner" in getattr(node, "attributes", {}) or isinstance(node.op, StopGradientOp)
    return is_stop or getattr(node.op, "draws", False)


def _why_not(graph, node):
    """Why a value that is known had better be no array; None if there is no reason."""
    if graph.is_free(node):
        return "numbers that need no memory"
    shape, dtype, lies = graph.facts(node)
    if lies not in (None, dense_strides(shape)):
        return "views that need no computing"
    if int(np.prod(shape)) * dtype.itemsize > _LARGEST:
        return "larger than %d bytes" % _LARGEST
    return None


def _values(graph, nodes):
    """Their values as numpy arrays."""
    if graph.ctx is None:
        return [np.array(value) for value in Executor(nodes).run({})]
    from dlsys.backend.program import Program

    # It is fed to say which dtype fractions have by default.
    scale = Variable("scale")
    program = Program(find_topo_sort(nodes), nodes, {scale: ((), graph.default)}, graph.ctx)
    program.feed({scale: ndarray.empty((), graph.ctx, graph.default)})
    return [value.asnumpy() for value in program.run()]
