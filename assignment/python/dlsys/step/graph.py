"""A step's own copy of its graph, which the passes change; the user's nodes stay as they are."""

import dataclasses
import re

import numpy as np

from dlsys.autodiff import find_topo_sort
from dlsys.backend.lowering import Lowering
from dlsys.backend.view import Literal
from dlsys.dtypes import FLOAT32, FLOAT64
from dlsys.executor import dtype_of
from dlsys.ops.base import ConstantOp, TensorOp


def rewired(node, inputs):
    """A copy of a node, of other inputs; `origin` is the node of the user.

    What a checkpoint computes inside is copied with it.
    """
    made = object.__new__(type(node))
    made.__dict__.update(node.__dict__)
    made.inputs = list(inputs)
    made.origin = origin(node)
    attributes = getattr(node, "attributes", {})
    if "inner" in attributes:
        moved = dict(zip(node.inputs, inputs))
        for each in attributes["inner"]:
            moved[each] = rewired(each, [moved[i] for i in each.inputs])
        inner = [moved[each] for each in attributes["inner"]]
        made.attributes = {**attributes, "inner": inner, "result": moved[attributes["result"]]}
    return made


def origin(node):
    """The node of the user that a copy was made of; the node itself if it is none."""
    return getattr(node, "origin", node)


def op_name(node):
    """What the op of a node is called in pictures and tables: relu, reduce_sum_axis_zero."""
    words = re.findall("[A-Z][a-z0-9]*", type(node.op).__name__.removesuffix("Op"))
    return getattr(node.op, "name", "") or "_".join(words).lower()


def random_nodes(nodes):
    """All nodes that draw random numbers, in the order of a walk; those inside checkpoints too."""
    found = []
    for node in find_topo_sort(nodes):
        inner = getattr(node, "attributes", {}).get("inner", ())
        found += [each for each in (*inner, node) if getattr(each.op, "draws", False)]
    return list(dict.fromkeys(found))


@dataclasses.dataclass
class Report:
    """What a pass did: names of nodes, and of those that it left, by reason."""

    title: str
    changed: list = dataclasses.field(default_factory=list)
    left: dict = dataclasses.field(default_factory=dict)

    def leave(self, reason, name):
        """Notes a node that stays as it is."""
        self.left.setdefault(reason, []).append(name)

    def __str__(self):
        lines = ["%s: %d%s" % (self.title, len(self.changed), listed(self.changed))]
        lines += ["  left %d, %s%s" % (len(n), r, listed(n)) for r, n in self.left.items()]
        return "\n".join(lines)


def listed(names, most=4):
    """The first few names, each cut where it is long."""
    if not names:
        return ""
    rest = len(names) - most
    shown = [name if len(name) <= 60 else name[:57] + "..." for name in names[:most]]
    return ": " + ", ".join(shown) + (", and %d more" % rest if rest > 0 else "")


class Graph:
    """Outputs and updates, of copied nodes, for feeds of known shapes and dtypes.

    Attributes:
        outputs: the nodes whose values a step returns.
        updates: parameter -> the node of its new value.
        ctx: the device.
        reports: what the passes said, in their order.
    """

    def __init__(self, outputs, updates, kinds, ctx):
        self.outputs, self.updates = list(outputs), dict(updates)
        self.kinds, self.ctx, self.reports = kinds, ctx, []
        doubles = any(dtype == FLOAT64 for _, dtype in kinds.values())
        #: The dtype of a fraction that nothing else decides.
        self.default = FLOAT64 if doubles else FLOAT32
        self._lowering = Lowering(kinds, self.default)
        fed = self._lowering.values
        self._known = {
            node: (*kind, fed[node].strides if ctx else None) for node, kind in kinds.items()
        }
        self.rewrite(lambda node: None if node.op.is_fed else rewired(node, node.inputs))

    @property
    def results(self):
        """Outputs and new values."""
        return [*self.outputs, *self.updates.values()]

    @property
    def nodes(self):
        """All nodes that are needed, inputs first."""
        return find_topo_sort(self.results)

    def facts(self, node):
        """What others may know of a value: shape, dtype, and how it lies on a device.

        A node may take the place of another if both have the same facts: then all that is computed
        from it is computed by the same kernels.
        """
        for each in find_topo_sort([node]) if node not in self._known else ():
            if each not in self._known:
                self._known[each] = self._found(each)
        return self._known[node]

    def lowered(self):
        """The instructions of all nodes whose facts were asked for."""
        return list(self._lowering.instructions)

    def is_free(self, node):
        """Whether the value needs no memory on a device, as a number that is repeated."""
        return self.ctx is not None and self.facts(node)[2] == "literal"

    def _found(self, node):
        if self.ctx is None:
            inputs = [self._known[each] for each in node.inputs]
            shape = node.op.infer_shape(node, [each[0] for each in inputs])
            return tuple(shape), dtype_of(node, [each[1] for each in inputs]), None
        for each in node.inputs:
            assert each in self._lowering.values, "%s has no facts" % each.name
        self._lowering.lower(node)
        value = self._lowering.values[node]
        is_literal = isinstance(value, Literal)
        # Bits of what a kernel makes may depend on the order of its loops, so on strides.
        return value.shape, value.dtype, "literal" if is_literal else value.strides

    def fits(self, node, other):
        """Whether `other` may take the place of a node."""
        return self._same(self.facts(node), self.facts(other))

    def _same(self, one, other):
        if self.ctx is None:
            return one[:2] == other[:2]
        return one == other

    def rewrite(self, rule):
        """Replaces nodes, inputs first, by what rule(node) gives; None leaves one as it is."""
        made = {}
        for node in self.nodes:
            inputs = [made[each] for each in node.inputs]
            is_new = any(a is not b for a, b in zip(inputs, node.inputs))
            current = rewired(node, inputs) if is_new else node
            found = rule(current)
            made[node] = current if found is None else found
        self.outputs = [made[node] for node in self.outputs]
        self.updates = {parameter: made[node] for parameter, node in self.updates.items()}


class KnownOp(TensorOp):
    """An array that a pass has computed, of the very dtype and bits that the device made."""

    @classmethod
    def node(cls, value, name):
        """The node of an array."""
        node = cls()(value=value)
        node.name = name
        return node

    def forward(self, node):
        return node.attributes["value"]

    def lower(self, node, build):
        return build.known(node.attributes["value"])

    def gradient(self, node, output_grad):
        return []

    def shape(self, node):
        return node.attributes["value"].shape

    def infer_dtype(self, node, dtypes):
        return node.attributes["value"].dtype


def constant_of(node):
    """The array of a constant, None of other nodes."""
    return node.attributes["value"] if isinstance(node.op, (ConstantOp, KnownOp)) else None


def number_of(node):
    """The number that all elements of a constant are, with its sign if it is 0; else None."""
    values = constant_of(node)
    if values is None or values.size == 0 or values.dtype.kind not in "biuf":
        return None
    first = values.flat[0]
    same = np.array_equal(values, np.broadcast_to(first, values.shape))
    signs = np.signbit(values) if values.dtype.kind == "f" else np.zeros(1)
    return first.item() if same and np.all(signs == signs.flat[0]) else None
