"""Draws a small graph before and after each pass of a step: docs/passes.md, docs/passes/.

    python tools/pass_pictures.py

All is taken from running the pass; nothing in the page is written by hand but this file.
"""

import functools
import inspect
import re
import sys
import textwrap
from pathlib import Path

KIT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(KIT / "solution/python")]

import numpy as np

import dlsys
from dlsys import dtypes, ndarray, ops
from dlsys.autodiff import find_topo_sort, gradients
from dlsys.backend.fusion import fuse
from dlsys.backend.gemm import with_products
from dlsys.backend.instructions import Elementwise
from dlsys.backend.lowering import Lowering
from dlsys.backend.updates import write_back
from dlsys.pictures.graph import Box, graph
from dlsys.pictures.svg import Svg
from dlsys.step import passes
from dlsys.step.drawing import draw_nodes
from dlsys.step.graph import Graph, Report
from dlsys.step.measuring import kernel_name, node_names
from dlsys.step.passes.in_place import update_in_place

PAGE, FOLDER = KIT / "docs/passes.md", KIT / "docs/passes"
HEAD = """\
# The passes of a step, before and after

<!-- made by `python tools/pass_pictures.py` -->

What `dlsys.compile` does to a graph before it runs, each pass alone on a small example.

## Passes over nodes

They keep every bit of every value. What stands below the pictures is what `step.explain()` prints
of the pass.
"""
OF_INSTRUCTIONS = """
## Passes over instructions

Instructions are the kernels that nodes become. A box is a kernel, below it the node whose value it
computes; round ones are arrays that are fed, and parameters.
"""


# --- examples: each returns outputs, and updates if there are any --------------------------------


def simplify():
    """x * 1, moves that undo each other."""
    x = ops.variable("x", (2, 3))
    y = ops.exp(ops.transpose(ops.transpose(x))) * 1
    return [ops.reshape(ops.reshape(y, (3, 2)), (6,))]


def into_products():
    """A transposed weight."""
    x, w = ops.variable("x", (2, 3)), ops.variable("w", (4, 3))
    return [x @ ops.transpose(w)]


def fold_constants():
    """A scale that is computed from numbers."""
    x = ops.variable("x", (3,))
    return [x * ops.exp(ops.as_node([0.0, 1.0, 2.0]) * 0.1)]


def merge_equal():
    """A value that is computed twice."""
    x = ops.variable("x", (2, 3))
    return [ops.tanh(x) * ops.square(ops.tanh(x))]


def mask_by_results():
    """The gradient of a layer whose result the next one reads."""
    x, w = ops.variable("x", (5, 3)), ops.variable("w", (3, 2))
    return gradients(ops.sum(ops.square(ops.relu(x @ w))), [w])


def drop_dead():
    """The gradient of a bias, which needs the shape of the sum, not its values."""
    x, b = ops.variable("x", (5, 3)), ops.variable("b", (3,))
    return gradients(ops.sum(ops.exp(x) + b), [b])


def in_place():
    """A parameter whose old value a loss reads."""
    x, w = ops.variable("x", (3,)), dlsys.parameter("w", np.ones(3))
    return [ops.sum(w * x)], {w: w - x * 0.1}


def fusion():
    """What follows a product, element by element."""
    x, w = ops.variable("x", (8, 4)), ops.variable("w", (4, 2))
    b, mask = ops.variable("b", (2,)), ops.variable("mask", (8, 2))
    return [ops.relu(x @ w + b) * mask]


# --- running the passes ---------------------------------------------------------------------------


class Example:
    """A step's graph of the nodes that an example returns."""

    def __init__(self, made, ctx):
        found = made()
        outputs, updates = found if isinstance(found, tuple) else (found, {})
        fed = [n for n in find_topo_sort([*outputs, *updates.values()]) if n.op.is_fed]
        kind = np.float64 if ctx is None else np.float32
        kinds = {node: (node.known[0], np.dtype(kind)) for node in fed}
        self.graph = Graph(outputs, updates, kinds, ctx)

    def picture(self):
        """The nodes as they are now."""
        made = self.graph
        drawn = draw_nodes(made.results, made.nodes, made.facts, "", made.updates)
        return Svg(re.sub(r"\nmade at [^<]*", "", drawn))

    def instructions(self):
        """(instructions, buffers that are read after a run)."""
        made = self.graph
        lowering = Lowering(made.kinds, dtypes.FLOAT32)
        for node in made.nodes:
            if node not in made.kinds:
                lowering.lower(node)
        write_back(lowering, made.updates)
        return lowering.instructions, {lowering.values[node].buffer for node in made.outputs}


def of_graph(apply, made, ctx):
    """(picture before, picture after, what the pass says)."""
    example = Example(made, ctx)
    before = example.picture()
    said = apply(example.graph)
    return before, example.picture(), str(said)


def of_instructions(apply, made, first=()):
    """The same of a pass over instructions, behind some that run first."""
    instructions, kept = Example(made, ndarray.cpu(0)).instructions()
    for each in first:
        instructions = each(instructions, kept)
    report = Report("parameters updated in place")
    if apply is update_in_place:
        after = apply(instructions, kept, report)
        said = str(report)
    else:
        after = apply(instructions, kept)
        said = f"kernels: {len(instructions)} before, {len(after)} after"
    return picture_of(instructions), picture_of(after), said


def picture_of(instructions):
    """Instructions as a graph: each below those whose results it reads."""
    boxes, writer = [], {}
    updated = {v.buffer for each in instructions for v in each.targets if v.buffer.fed}
    for number, each in enumerate(instructions):
        for view in each.sources:
            buffer = view.buffer
            if buffer not in writer:
                writer[buffer] = buffer
                boxes.append(round_box(buffer, [], buffer.fed.name, buffer in updated))
        is_copy = type(each) is Elementwise and each.code == "x0"
        words = "copy" if is_copy else kernel_name(each)
        nodes = node_names(each)
        read = [writer[view.buffer] for view in each.sources]
        boxes.append(Box(number, read, words, nodes[-1], "\n".join(nodes), "blue"))
        for view in each.targets:
            writer[view.buffer] = number
            if view.buffer in updated:
                boxes.append(round_box(("new", number), [number], view.buffer.fed.name, True))
    return graph("", boxes)


def round_box(key, inputs, name, is_updated):
    """The box of a fed array, or of a parameter before and after it is written."""
    below = ("new value" if inputs else "old value") if is_updated else "fed"
    return Box(key, inputs, name, below, colour="amber" if is_updated else "grey", is_round=True)


ON_CPU = ndarray.cpu(0)
#: Name -> (the pass, the example, how the pictures are made).
GRAPH_PASSES = {
    "simplify": (passes.simplify, simplify, ON_CPU),
    "into_products": (passes.into_products, into_products, ON_CPU),
    "fold_constants": (passes.fold_constants, fold_constants, None),
    "merge_equal": (passes.merge_equal, merge_equal, ON_CPU),
    "mask_by_results": (passes.mask_by_results, mask_by_results, ON_CPU),
    "drop_dead": (passes.drop_dead, drop_dead, ON_CPU),
}
INSTRUCTION_PASSES = {
    "update_in_place": (update_in_place, in_place, ()),
    "fuse": (fuse, fusion, ()),
    "with_products": (with_products, fusion, (fuse,)),
}


# --- the page -------------------------------------------------------------------------------------


def section(name, apply, made, pictures):
    """A pass: what it does, the example as code, and its pictures."""
    before, after, said = pictures
    module = sys.modules[apply.__module__]
    path = module.__name__.removeprefix("dlsys.").replace(".", "/") + ".py"
    whole = apply.__doc__ if apply.__module__.startswith("dlsys.step") else module.__doc__
    words = " ".join(whole.split("\n\n")[0].split())
    code = textwrap.dedent(inspect.getsource(made).partition('"""\n')[2])
    text = f"\n### {name}\n\n{words} It stands in `{path}`.\n\n```python\n{code}```\n\n"
    text += f"| before | after |\n|---|---|\n| {shown(name, 'before')} | {shown(name, 'after')} |\n"
    files = {f"{name}-before.svg": before, f"{name}-after.svg": after}
    return text + f"\n```text\n{said}\n```\n", files


def shown(name, when):
    """A picture in the page."""
    return f"![{name}, {when}](passes/{name}-{when}.svg)"


@functools.cache
def made():
    """(the page, file name -> picture)."""
    text, files = HEAD, {}
    for name, (apply, example, ctx) in GRAPH_PASSES.items():
        more, pictures = section(name, apply, example, of_graph(apply, example, ctx))
        text, files = text + more, {**files, **pictures}
    text += OF_INSTRUCTIONS
    for name, (apply, example, first) in INSTRUCTION_PASSES.items():
        found = of_instructions(apply, example, first)
        more, pictures = section(name, apply, example, found)
        text, files = text + more, {**files, **pictures}
    return text, files


if __name__ == "__main__":
    page, files = made()
    PAGE.write_text(page)
    FOLDER.mkdir(exist_ok=True)
    for path in set(FOLDER.glob("*.svg")) - {FOLDER / name for name in files}:
        path.unlink()
    for name, picture in files.items():
        picture.save(FOLDER / name)
