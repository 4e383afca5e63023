"""How threads find their element, and the shapes of grids and blocks."""

from .functions import function
from .number_types import ELEMENTS
from .tree import Node


def flat_index(g):
    """(lines, index, type of the index) for blocks and grids of one dimension."""
    i = g.pick(["i", "idx", "gid", "index", "id"])
    if i in [x.name for x in g.names()]:
        i = "i_"
    g.taken.add(i)
    t = g.pick(
        [
            "int",
            "int",
            "int",
            "unsigned",
            "unsigned int",
            "const int",
            "size_t",
            "long long",
            "auto",
            "const unsigned",
        ]
    )
    form = g.weighted({"product": 4, "turned": 1, "steps": 1, "macro": 1, "function": 1, "mad": 1})
    g.note("index by " + form)
    product = "blockIdx.x * blockDim.x + threadIdx.x"
    if form == "turned":
        product = "threadIdx.x + blockDim.x * blockIdx.x"
    elif form == "mad":
        product = "(blockIdx.x) * (blockDim.x) + (threadIdx.x)"
    elif form == "macro":
        product = function(g, "GID", lambda: g.macro("GID", "", f"({product})"))
    elif form == "function":
        word = g.unique("global_id")
        g.add_top(f"__device__ inline int {word}() {{ return {product}; }}")
        product = word + "()"
    kind = {
        "const int": "int",
        "unsigned int": "unsigned",
        "const unsigned": "unsigned",
        "auto": "int" if form == "function" else "unsigned",
    }.get(t, t)
    if form == "steps":
        return (
            [f"int tx_ = threadIdx.x, bx_ = blockIdx.x;\n{t} {i} = bx_ * blockDim.x + tx_;"],
            i,
            kind,
        )
    return [f"{t} {i} = {product};"], i, kind


def deep_index(g, dimensions):
    """(lines, index, type of the index) for blocks and grids of more dimensions."""
    g.note(f"index of {dimensions} dimensions")
    x, y = "blockIdx.x * blockDim.x + threadIdx.x", "blockIdx.y * blockDim.y + threadIdx.y"
    if dimensions == 2:
        lines = g.pick(
            [[f"int col = {x};", f"int row = {y};"], [f"const int row = {y}, col = {x};"]]
        )
        return [*lines, "int i = row * (int)(gridDim.x * blockDim.x) + col;"], "i", "int"
    return (
        [
            f"int col = {x}, row = {y};",
            "int layer = blockIdx.z * blockDim.z + threadIdx.z;",
            "int i = (layer * (gridDim.y * blockDim.y) + row) * (gridDim.x * blockDim.x) + col;",
        ],
        "i",
        "int",
    )


def guarded(g, i, inner):
    """The body for those threads that have an element."""
    form = g.weighted(
        {
            "if": 4,
            "return": 4,
            "return braces": 1,
            "not": 1,
            "negated": 1,
            "else": 0.7,
            "turned": 1,
            "cast": 1,
            "macro": 1,
        }
    )
    g.note("guard " + form)
    if form == "macro":
        word = function(g, "GUARD", lambda: g.macro("GUARD", "(i, n)", "if ((i) >= (n)) return"))
        return Node(f"{word}({i}, n);\n", inner)
    if form in ("return", "return braces", "not"):
        test = {
            "return": f"if ({i} >= n) return;",
            "return braces": f"if (!({i} < n)) {{\n  return;\n}}",
            "not": f"if (n <= {i}) return;",
        }[form]
        return Node(test, "\n", inner)
    test = {
        "if": f"{i} < n",
        "negated": f"!({i} >= n)",
        "turned": f"n > {i}",
        "cast": f"(int){i} < n",
        "else": f"{i} >= n",
    }[form]
    if form == "else":
        return Node(f"if ({test}) {{ ; }} else {{\n", inner, "}\n")
    return Node(f"if ({test}) {{\n", inner, "}\n")


def striding(g, i, product, inner):
    """A loop over the grid."""
    g.note("grid-stride loop")
    stride = "gridDim.x * blockDim.x"
    form = g.pick(["for", "for", "named", "while"])
    if form == "named":
        return Node(
            f"int stride_ = {stride};\nfor (int {i} = {product}; {i} < n; {i} += stride_) {{\n",
            inner,
            "}\n",
        )
    if form == "while":
        return Node(
            f"int {i}_ = {product};\nwhile ({i}_ < n) "
            f"{{\nconst int {i} = {i}_;\n{i}_ += {stride};\n",
            inner,
            "}\n",
        )
    return Node(f"for (int {i} = {product}; {i} < n; {i} += {stride}) {{\n", inner, "}\n")


SIZES = {
    1: [1, 31, 32, 33, 64, 96, 100, 128, 256],
    2: [(8, 8), (16, 16), (32, 4), (5, 7), (33, 2), (1, 1), (16, 2)],
    3: [(4, 4, 4), (8, 2, 3), (2, 3, 5), (32, 2, 2), (1, 1, 3)],
}


WHOLE = {
    1: [32, 64, 96, 128, 256],
    2: [(8, 8), (16, 16), (32, 4), (16, 2)],
    3: [(4, 4, 4), (32, 2, 2)],
}


def shapes(g, dimensions):
    """(grid, block, n) of some launches."""
    found = []
    for block in g.random.sample((WHOLE if g.full_warps else SIZES)[dimensions], 2):
        block = (block,) if isinstance(block, int) else block
        block += (1,) * (3 - len(block))
        threads = block[0] * block[1] * block[2]
        most = max(1, min(6, 900 // threads))
        grid = [1, 1, 1]
        for d in range(dimensions):
            grid[d] = g.integer(1, max(1, int(most ** (1 / dimensions))))
        total = threads * grid[0] * grid[1] * grid[2]
        n = g.pick([total, max(1, total - g.integer(1, 40)), total // 2 + 1])
        found.append((tuple(grid), block, min(n, ELEMENTS)))
    return found
