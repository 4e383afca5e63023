"""A whole kernel: its parameters, how threads find their element, its body, and its launches."""

from dataclasses import dataclass

from . import expressions as e
from . import flow, meetings
from .context import Context, Name
from .indices import deep_index, flat_index, guarded, shapes, striding
from .number_types import ELEMENTS, KINDS
from .parameters import Parameter, array_parameters, constants, scalar_parameters
from .tree import Node, joined, statement


@dataclass
class Kernel:
    """A kernel with all that a program needs to run it."""

    seed: int
    top: Node
    code: Node
    launch: object
    undefined: list
    launches: list
    fibers: bool
    counts: dict
    messy: bool

    @property
    def name(self):
        return f"k{self.seed}"


@dataclass
class Launch:
    """What the host does to run the kernel once."""

    before: list
    called: str
    dynamic: str
    arguments: Node
    symbols: list


# Bodies


def own_elements(g, outs, i):
    """Makes the thread's elements places."""
    g.own_index = i
    for name, t in outs:
        index = g.pick([f"[{i}]", f"[{i}]", f"[{i} + 0]"])
        g.own.append((f"{name}{index}", t))
    for name, t in g.same_arrays:
        g.declare(Name(f"{name}[{i}]", t, writable=False))


def results(g, outs, i):
    """The last statements: elements get what was computed."""
    lines = []
    for name, t in outs:
        op = g.pick([" = ", " = ", " += "])
        v = e.stored(g, t, 2) if op == " = " else e.step(g, t, 1)
        of_all = [n.name for n in g.names() if n.form == "scalar" and not n.uniform and n.type == t]
        extra = Node(" + ", g.pick(of_all)) if of_all and g.chance(0.7) and KINDS[t].wraps else ""
        lines.append(statement(f"{name}[{i}]{op}", v.node, extra, ";"))
    if g.chance(0.3):
        t = outs[0][1]
        names = [n for n in g.names() if n.form == "scalar" and n.type == t and not n.uniform]
        for n in names[:3]:
            if KINDS[t].wraps or KINDS[t].real:
                lines.append(statement(f"{outs[0][0]}[{i}] += {n.name};"))
    return joined(lines)


def plain_body(g, outs):
    """A kernel without barriers: (code, dimensions, guarded)."""
    dimensions = g.weighted({1: 8, 2: 3, 3: 1})
    g.uniform = False
    strides = dimensions == 1 and g.chance(0.2)
    lines, i, kind = flat_index(g) if dimensions == 1 else deep_index(g, dimensions)
    lines += g.first_lines
    with g.scope():
        g.declare(Name(i, "int" if strides else kind, writable=False, low=0, high=ELEMENTS))
        own_elements(g, outs, i)
        if strides:
            g.loops = ["free"]
            g.trips = 4
        if g.chance(0.15) and not strides:
            g.note("statements before the guard")
            own, g.own, g.own_index = g.own, [], ""
            same = [n for n in g.scopes[-1] if "[" not in n.name]
            whole, g.scopes[-1] = g.scopes[-1], same
            early = joined([flow.one(g)])
            g.own, g.own_index = own, i
            g.scopes[-1] = [*whole, *[n for n in g.scopes[-1] if n not in same]]
            lines.append(early)
        inner = Node(flow.statements(g, g.integer(2, 5)), results(g, outs, i))
    if strides:
        inner = Node(*g.first_lines, inner)
        return striding(g, i, "blockIdx.x * blockDim.x + threadIdx.x", inner), 1, True
    lines = [Node(line, "\n") for line in lines]
    if dimensions == 1:
        return Node(*lines, guarded(g, i, inner)), 1, True
    guard = g.pick(
        ["row < rows && col < cols", "!(row >= rows || col >= cols)", "col < cols && row < rows"]
    )
    if dimensions == 3 or g.chance(0.3):
        return Node(*lines, guarded(g, i, inner)), dimensions, True
    g.note("guard of two dimensions")
    limits = (
        "const int rows = gridDim.y * blockDim.y - 1, cols = (int)(gridDim.x * blockDim.x) - 2;\n"
    )
    if g.chance(0.4):
        return Node(*lines, limits, f"if (!({guard})) return;\n", inner), 2, True
    return Node(*lines, limits, f"if ({guard}) {{\n", inner, "}\n"), 2, True


def block_body(g, outs):
    """A kernel whose threads meet at barriers; all have an element."""
    dimensions = g.weighted({1: 7, 2: 2, 3: 1})
    g.barriers, g.no_return = True, False
    g.full_warps = g.chance(0.4)
    meetings.shared_arrays(g)
    tid = {
        1: "threadIdx.x",
        2: "threadIdx.y * blockDim.x + threadIdx.x",
        3: "(threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x",
    }[dimensions]
    size = {
        1: "blockDim.x",
        2: "blockDim.x * blockDim.y",
        3: "blockDim.x * blockDim.y * blockDim.z",
    }[dimensions]
    grid = {
        1: "blockIdx.x",
        2: "blockIdx.y * gridDim.x + blockIdx.x",
        3: "(blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x",
    }[dimensions]
    pairs = [("tid", "bs"), ("t", "count"), ("lane", "size"), ("me", "threads")]
    t, n = g.pick([pair for pair in pairs if not g.taken & set(pair)])
    g.taken |= {t, n}
    g.tid, g.size = t, f"(int){n}" if g.chance(0.1) else n
    lines = [
        g.pick([f"int {t} = {tid};", f"const int {t} = {tid};", f"unsigned {t} = {tid};"]),
        g.pick([f"int {n} = {size};", f"const unsigned {n} = {size};"]),
        g.pick([f"int i = ({grid}) * {n} + {t};", f"const int i = {t} + ({grid}) * {n};"]),
    ]
    if dimensions == 1 and g.chance(0.3):
        g.tid, g.size, lines = (
            "threadIdx.x",
            "blockDim.x",
            ["int i = blockIdx.x * blockDim.x + threadIdx.x;"],
        )
    g.note(f"block of {dimensions} dimensions")
    with g.scope():
        g.declare(Name("i", "int", writable=False, low=0, high=ELEMENTS))
        own_elements(g, outs, "i")
        first = [
            *g.first_lines,
            *[flow.declarations.declaration(g) for _ in range(g.integer(1, 3))],
        ]
        inner = [
            flow.statements(g, g.integer(1, 2)),
            meetings.exchange(g),
            flow.statements(g, g.integer(1, 3)),
        ]
        g.barriers, g.uniform = False, False
        if g.chance(0.3):
            g.note("statements behind the last barrier")
            inner.append(flow.statements(g, 2))
        last = results(g, outs, "i")
    if g.chance(0.3):
        g.note("guard behind the barriers")
        last = Node("if (i < n) {\n", last, "}\n")
    lines = [Node(line, "\n") for line in lines]
    shared = list(g.shared_lines)
    if g.chance(0.3):
        lines, shared = shared, lines
    return Node(*shared, *lines, *first, *inner, last), dimensions, True


# Launches


def make_kernel(seed):
    """The kernel of a seed: always the same one."""
    g = Context(seed)
    g.same_arrays, g.symbols, g.first_lines = [], [], []
    constants(g)
    parameters, outs, before = array_parameters(g, None)
    parameters += [Parameter("int n", Node("l.n")), *scalar_parameters(g)]
    pattern = g.weighted({"plain": 6, "block": 5})
    if pattern == "plain" and g.chance(0.15):
        t = g.pick(["int", "unsigned", "unsigned long long"])
        op = g.pick(["atomicAdd", "atomicMin", "atomicMax", "atomicOr", "atomicXor", "atomicAnd"])
        g.counts_of_all.append(("counts", t, op))
        before.append(f"{t}* o2 = out<{t}>(2);")
        parameters.append(Parameter(f"{t}* counts", Node("o2")))
    g.note("kernel " + pattern)
    body, dimensions, _ = (plain_body if pattern == "plain" else block_body)(g, outs)
    if g.chance(0.5):
        g.random.shuffle(parameters)
    return written(g, seed, body, dimensions, parameters, before)


def written(g, seed, body, dimensions, parameters, before):
    """The kernel with its head and its launch."""
    head, called = "", f"k{seed}"
    form = g.weighted({"plain": 7, "type": 1, "value": 1, "static": 1, "bounds": 1})
    g.note("kernel head " + form)
    if form == "type":
        head, called = (
            g.pick(["template <typename T>\n", "template <class T = float> "]),
            called + "<float>",
        )
        if "class" in head:
            g.note("kernel head class")
    elif form == "value":
        head, called = "template <int TILE, bool FLAG = true>\n", called + "<16>"
    word = {
        "static": "static __global__ void",
        "bounds": "__global__ void __launch_bounds__(256)",
    }.get(form, "__global__ void")
    between = g.pick([", ", ",\n    "])
    text = between.join(p.text for p in parameters)
    code = Node(head, f"{word} k{seed}({text}) {{\n", body, "}\n")
    if not head and g.chance(0.1):
        g.note("another kernel of the name")
        other = ", ".join(p.text.replace("int n", "double n") for p in parameters)
        other = f"__global__ void k{seed}({other}) {{ if (n < 0) return; }}\n"
        code = g.pick([Node(other, code), Node(code, other)])
    arguments = joined([p.argument for p in parameters], ", ")
    dynamic = f"l.threads() * sizeof({g.dynamic})" if g.dynamic else "0"
    launch = Launch(
        [f"  {line}\n" for line in before], called, dynamic, arguments, [n for n, _, _ in g.symbols]
    )
    return Kernel(
        seed,
        joined(g.top),
        code,
        launch,
        list(g.macros),
        shapes(g, dimensions),
        g.fibers,
        dict(g.counts),
        g.chance(0.25),
    )
