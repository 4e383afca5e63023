"""Graphs with gradients, on numpy, on a CPU and on a GPU.

`dlsys.compile` makes a training step of a graph, `dlsys.parameter` a variable with a value. What
is named here is imported when it is asked for, so that `import dlsys` takes no time.
"""

import importlib

_LAZY = {
    "compile": "step",
    "parameter": "step",
    "pinned": "backend.uploads",
    "Step": "step",
    "draw": "step",
}
_MODULES = ("datasets", "models", "nn", "optim")


def __getattr__(name):
    if name in _LAZY:
        return getattr(importlib.import_module("." + _LAZY[name], __name__), name)
    if name in _MODULES:
        return importlib.import_module("." + name, __name__)
    raise AttributeError("module %r has no attribute %r" % (__name__, name))


def __dir__():
    return sorted([*globals(), *_LAZY, *_MODULES])
