"""What threads do together: shared memory between barriers, warps, atomics.

Every exchange is free of races by itself: it ends with a barrier, or all of a kernel begin with
one. It stands only where all threads of a block come by.
"""

from dataclasses import dataclass

from . import expressions as e
from .conversions import cast, fit, integral
from .functions import function
from .number_types import KINDS, STEP, STORED
from .tree import Node, Value, statement

THREADS = 256  # the most a block of these kernels has


@dataclass
class Shared:
    """An array in shared memory with an element for each thread."""

    name: str
    type: str
    form: str = "flat"  # or grid, struct
    columns: int = 0
    struct: object = None


def sync(g):
    """A barrier of the block."""
    form = g.weighted({"plain": 12, "macro": 1.5, "function": 1, "count": 0.5, "comment": 0.5})
    g.note("barrier " + form)
    if form == "macro":
        return (
            function(
                g,
                "SYNC",
                lambda: g.macro(
                    "SYNC", *g.pick([("", "__syncthreads()"), ("()", "__syncthreads()")])
                ),
            )
            + sync_parentheses(g)
            + ";"
        )
    if form == "function":

        def make():
            name = g.unique("meet")
            g.add_top(f"__device__ inline void {name}() {{ __syncthreads(); }}")
            return name

        return function(g, "meet", make) + "();"
    return {
        "plain": "__syncthreads();",
        "count": "(void)__syncthreads_count(1);",
        "comment": "__syncthreads(/* all */);",
    }[form]


def sync_parentheses(g):
    """() where this kernel's SYNC is a function."""
    name = g.functions["SYNC"]
    return "()" if any(f"#define {name}()" in str(top) for top in g.top) else ""


def element(shared, index):
    """The element of a shared array for the thread `index`."""
    if shared.form == "grid":
        return f"{shared.name}[({index}) / {shared.columns}][({index}) % {shared.columns}]"
    if shared.form == "struct":
        return f"{shared.name}[{index}].{shared.struct.main.name}"
    return f"{shared.name}[{index}]"


def other(g):
    """The index of another thread of the block."""
    c = g.integer(1, 40)
    return g.pick(
        [
            f"({g.tid} + {c}) % {g.size}",
            f"({g.tid} * 7 + {c}) % {g.size}",
            f"{g.size} - 1 - {g.tid}",
            f"({g.tid} + 1 == {g.size} ? 0 : {g.tid} + 1)",
            f"{g.tid} > 0 ? {g.tid} - 1 : 0",
            "0",
            f"{g.size} - 1",
            f"({g.tid} ^ 1) < {g.size} ? ({g.tid} ^ 1) : {g.tid}",
        ]
    )


def received(g, t, text, what=STORED):
    """Where a value from other threads goes: a statement that uses it once."""
    from . import flow

    value = Value(Node(text), t, *((-what, what) if not KINDS[t].wraps else KINDS[t].range))
    found = flow.place(g)
    if found is None or g.chance(0.3):
        from .context import Name

        name = g.fresh()
        g.declare(Name(name, t))
        return statement(f"{t} {name} = ", value.node, ";")
    place, kind, _ = found
    v = fit(g, value, kind, STEP)
    return statement(place, g.pick([" += ", " = ", " -= "]), v.node, ";")


def around(g, *parts):
    """The statements of an exchange with the barrier before or behind them."""
    if g.sync_first:
        return Node(sync(g), "\n", *parts, drop=True)
    return Node(*parts, sync(g), "\n", drop=True)


def neighbour(g, shared):
    v = e.stored(g, shared.type)
    return around(
        g,
        f"{element(shared, g.tid)} = ",
        v.node,
        ";\n",
        sync(g),
        "\n",
        received(g, shared.type, element(shared, other(g))),
    )


def own_first(g, shared):
    """The thread's element is written, changed, then read by others."""
    from . import changes

    mine = element(shared, g.tid)
    with g.setting(in_lambda=True):
        change = changes.change(g, mine, shared.type)
    return around(
        g,
        f"{mine} = ",
        e.stored(g, shared.type).node,
        ";\n",
        change,
        sync(g),
        "\n",
        received(g, shared.type, element(shared, other(g))),
    )


def tree(g, shared):
    """A sum of the block by halves."""
    s, t = g.fresh(), g.tid
    mine, his = element(shared, t), element(shared, f"{t} + {s}")
    head = g.pick(
        [
            f"for (int {s} = 128; {s} > 0; {s} >>= 1) {{\n",
            f"for (unsigned {s} = 128; {s} > 0; {s} /= 2) {{\n",
            f"for (int {s} = 1; {s} < {g.size}; {s} *= 2) {{\n",
        ]
    )
    test = (
        f"{t} < {s} && {t} + {s} < {g.size}"
        if "128" in head
        else f"{t} % (2 * {s}) == 0 && {t} + {s} < {g.size}"
    )
    op = (
        g.pick([" += ", " -= "])
        if not KINDS[shared.type].wraps
        else g.pick([" += ", " ^= ", " |= "])
    )
    return around(
        g,
        f"{mine} = ",
        e.stored(g, shared.type, 1, STEP).node,
        ";\n",
        sync(g),
        "\n",
        head,
        f"if ({test}) {mine}{op}{his};\n",
        sync(g),
        "\n}\n",
        received(g, shared.type, element(shared, "0"), STEP * THREADS),
    )


def tree_while(g, shared):
    """The same by a while loop whose counter outlives it."""
    s, t = g.fresh(), g.tid
    mine, his = element(shared, t), element(shared, f"{t} + {s}")
    return around(
        g,
        f"{mine} = ",
        e.stored(g, shared.type, 1, STEP).node,
        f";\nint {s} = 128;\n",
        f"while ({s} > 0) {{\n",
        sync(g),
        f"\nif ({t} < {s} && {t} + {s} < {g.size}) {{ "
        f"{mine} = {mine} + {his}; }}\n{s} >>= 1;\n}}\n",
        sync(g),
        "\n",
        received(g, shared.type, element(shared, g.pick(["0", t])), STEP * THREADS),
    )


def scan(g, shared):
    """Sums of all threads before."""
    s, v, t = g.fresh(), g.fresh(), g.tid
    mine = element(shared, t)
    return around(
        g,
        f"{mine} = ",
        e.stored(g, shared.type, 1, STEP).node,
        ";\n",
        sync(g),
        "\n",
        f"for (int {s} = 1; {s} < (int)({g.size}); {s} <<= 1) {{\n",
        f"{shared.type} {v} = 0;\nif ({t} >= {s}) {v} = {element(shared, f'{t} - {s}')};\n",
        sync(g),
        f"\n{mine} += {v};\n",
        sync(g),
        "\n}\n",
        received(g, shared.type, element(shared, other(g)), STEP * THREADS),
    )


def histogram(g, shared):
    """Counts by atomics in shared memory."""
    t = g.pick(["int", "unsigned", "unsigned long long"])
    name = g.unique("bins")
    g.shared_lines.append(statement(f"__shared__ {t} {name}[16];"))
    op = g.pick(["Add", "Max", "Or", "Min", "Xor", "And"])
    g.note("atomic of shared memory " + op)
    bin_of = integral(g, e.value(g, 1)).node
    v = e.stored(g, t, 1, STEP)
    first = g.pick(
        [
            f"if ({g.tid} < 16) {name}[{g.tid}] = {g.integer(0, 9)};\nfor (int "
            f"k_ = {g.size}; k_ < 16; ++k_) if ({g.tid} == 0) {name}[k_] = 1;\n",
            f"for (int k_ = {g.tid}; k_ < 16; k_ += {g.size}) {name}[k_] = 0;\n",
        ]
    )
    return around(
        g,
        first,
        sync(g),
        f"\natomic{op}(&{name}[(",
        bin_of,
        ") & 15], ",
        cast(g, t, v.node),
        ");\n",
        sync(g),
        "\n",
        received(g, t, f"{name}[({other(g)}) & 15]", STEP * THREADS),
    )


def broadcast(g, shared):
    """One thread's value for all."""
    word = g.unique("one")
    g.shared_lines.append(statement(f"__shared__ {shared.type} {word};"))
    who = g.pick(["0", f"{g.size} - 1", f"({g.integer(0, 300)} % {g.size})"])
    return around(
        g,
        f"if ({g.tid} == {who}) {word} = ",
        e.stored(g, shared.type).node,
        ";\n",
        sync(g),
        "\n",
        received(g, shared.type, word),
    )


def votes(g, shared):
    """Barriers that count."""
    word, limit = g.pick(
        [("__syncthreads_count", THREADS), ("__syncthreads_or", 1), ("__syncthreads_and", 1)]
    )
    g.note(word)
    name = g.fresh()
    test = e.condition(g, 1).node
    use = received(g, "int", name + (" != 0" if limit == 1 else ""), limit)
    return Node(f"int {name} = {word}(", test, ");\n", use, drop=True)


def in_function(g, shared):
    """A device function with barriers inside."""
    if shared.form != "flat":
        return neighbour(g, shared)

    def make():
        name = g.unique("pass_on")
        head = g.pick(["__device__ ", "__device__ __forceinline__ ", "static __device__ "])
        body = "__syncthreads(); s[t] = v; __syncthreads(); T w = s[(t + 1) % n]; __syncthreads(); "
        tail = g.pick(
            [
                ("T", "return w;", "T v"),
                ("void", "v = w;", "T& v"),
                ("void", "*out = w;", "T v, T* out"),
            ]
        )
        t = shared.type
        lines = [f"{tail[0]} {name}(T* s, int t, int n, {tail[2]}) {{ {body}{tail[1]} }}"]
        if g.chance(0.4):
            g.add_top("template <typename T> ", head, lines[0])
        else:
            g.add_top(
                head, lines[0].replace("T ", t + " ").replace("T*", t + "*").replace("T&", t + "&")
            )
        return name, tail[2]

    name, how = function(g, ("pass_on", shared.type), make)
    v, local = e.stored(g, shared.type), g.fresh()
    call = {
        "T v": f"{local} = {name}({shared.name}, {g.tid}, {g.size}, {local});",
        "T& v": f"{name}({shared.name}, {g.tid}, {g.size}, {local});",
        "T v, T* out": f"{name}({shared.name}, {g.tid}, {g.size}, {local}, &{local});",
    }[how]
    return Node(
        f"{shared.type} {local} = ",
        v.node,
        ";\n",
        call,
        "\n",
        received(g, shared.type, local),
        drop=True,
    )


def uniform_loop(g, shared):
    """State of the thread that is kept through the barriers of a loop."""
    from . import flow

    k, turns = g.fresh(), g.integer(2, 3)
    with g.scope(), g.setting(trips=g.trips * turns, loops=[*g.loops, "uniform"]):
        from .context import Name

        g.declare(Name(k, "int", writable=False, uniform=True, counter=True, low=0, high=turns))
        inner = [flow.changed(g), neighbour(g, shared), flow.changed(g)]
    return Node(f"for (int {k} = 0; {k} < {turns}; ++{k}) {{\n", *inner, "}\n", drop=True)


EXCHANGES = {
    "neighbour": (neighbour, 6),
    "own first": (own_first, 3),
    "tree": (tree, 3),
    "tree by while": (tree_while, 1.5),
    "scan": (scan, 1.5),
    "histogram": (histogram, 2),
    "broadcast": (broadcast, 2),
    "votes of the block": (votes, 1),
    "in a function": (in_function, 2),
    "loop": (uniform_loop, 3),
}
