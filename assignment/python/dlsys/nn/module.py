"""What all layers and networks are: modules in modules, with named parameters."""

import numbers

import numpy as np

from dlsys import ops
from dlsys.autodiff import Node
from dlsys.ops.known import known
from dlsys.step import parameter


class Module:
    """A part of a network. A class states `forward(x, train)`, which makes nodes.

    Attributes that are parameters, modules or lists of modules are found, and named by where they
    are: `layer1.0.conv1.weight`.
    """

    #: Names of parameters that no gradient changes, such as running means.
    buffers = ()

    def __call__(self, x, train=False):
        """The node of the result.

        Args:
            x: the node of the input.
            train: whether the parameters are about to be learned: then dropout drops, and norms
                of batches have the batch's own mean.
        """
        #: The node of the last result.
        self.result = result = self.forward(x, train)
        #: The shapes of the last input and result, None where they are not known.
        self.shapes = tuple(found and found[0] for found in (known(x), known(result)))
        return result

    def forward(self, x, train):
        """The node of the result."""
        raise NotImplementedError("%s has no forward" % type(self).__name__)

    def children(self):
        """(name, module) of the modules in this one."""
        for name, value in vars(self).items():
            parts = enumerate(value) if isinstance(value, (list, tuple)) else [(None, value)]
            for number, each in parts:
                if isinstance(each, Module):
                    yield (name if number is None else "%s.%d" % (name, number)), each

    def modules(self, prefix=""):
        """(name, module) of this module and of all in it."""
        yield prefix, self
        for name, child in self.children():
            yield from child.modules("%s.%s" % (prefix, name) if prefix else name)

    def own(self):
        """name -> parameter, of this module alone."""
        return {
            name: value
            for name, value in vars(self).items()
            if isinstance(value, Node) and value.op.is_fed and name != "result"
        }

    def named_parameters(self):
        """name -> parameter, of all, buffers too. From now on these are the nodes' names."""
        found = {}
        for prefix, module in self.modules():
            for name, node in module.own().items():
                node.name = "%s.%s" % (prefix, name) if prefix else name
                found[node.name] = node
        return found

    def parameters(self):
        """The parameters that are learned, in the order of their names in `named_parameters`."""
        buffers = {id(node) for node in self.running()}
        return [node for node in self.named_parameters().values() if id(node) not in buffers]

    def running(self):
        """The parameters that are not learned."""
        return [
            getattr(module, name) for _, module in self.modules() for name in module.buffers
        ]  # fmt: skip

    def updates(self):
        """Buffer -> node of its new value, from the last call with `train=True`."""
        found = {}
        for _, module in self.modules():
            found.update(vars(module).get("_updates", {}))
        return found

    def state_dict(self, step=None):
        """name -> numpy array, of all parameters: those of a step, or else the initial ones."""
        named = self.named_parameters()
        if step is None:
            return {name: np.array(node.initial) for name, node in named.items()}
        return {name: step.get(node) for name, node in named.items()}

    def load_state_dict(self, arrays):
        """Makes these values the initial ones; a step compiled after it begins with them.

        Args:
            arrays: name -> array. PyTorch's counters `num_batches_tracked` are passed over.

        Raises:
            ValueError: a name is missing or surplus, or a shape differs; nothing has changed.
        """
        named = self.named_parameters()
        arrays = {n: a for n, a in arrays.items() if not n.endswith("num_batches_tracked")}
        missing, surplus = sorted(named.keys() - arrays), sorted(arrays.keys() - named)
        if missing or surplus:
            raise ValueError(
                "the state lacks %s, and has %s besides"
                % (", ".join(missing) or "nothing", ", ".join(surplus) or "nothing")
            )
        for name, node in named.items():
            if np.shape(arrays[name]) != node.known[0]:
                raise ValueError(
                    "%s has shape %s, there it is %s"
                    % (name, node.known[0], np.shape(arrays[name]))
                )
        for name, node in named.items():
            node.initial = np.array(arrays[name])


class Sequential(Module):
    """Modules one after the other, named by their numbers."""

    def __init__(self, *parts):
        self.parts = list(parts)

    def children(self):
        """(number, module)."""
        return ((str(number), part) for number, part in enumerate(self.parts))

    def forward(self, x, train):
        """The last module's result."""
        for part in self.parts:
            x = part(x, train)
        return x


def made(initial, shape):
    """A parameter with the values that an initialiser gives; its module names it.

    Raises:
        ValueError: an extent is no whole number from 1 on.
    """
    if not all(isinstance(each, numbers.Integral) and each >= 1 for each in shape):
        raise ValueError("a parameter of shape %s; hint: whole numbers from 1 on" % (tuple(shape),))
    return parameter("parameter", initial(tuple(shape)))


def l2(module, strength):
    """strength / 2 times the sum of the squares of all weights: of parameters with two axes or
    more, so biases and norms are free."""
    weights = [node for node in module.parameters() if len(node.known[0]) > 1]
    total = ops.sum(ops.square(weights[0]))
    for each in weights[1:]:
        total = total + ops.sum(ops.square(each))
    return total * (strength / 2)
