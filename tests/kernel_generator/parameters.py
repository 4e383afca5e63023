"""The parameters of a kernel, and what stands at file scope."""

from dataclasses import dataclass

from .context import Name
from .number_types import KINDS
from .structs import initial, literal_of, some_struct
from .tree import Node

PARAMETER_NAMES = [
    "in",
    "out",
    "src",
    "dst",
    "data",
    "x",
    "y",
    "A",
    "B",
    "C",
    "input",
    "output",
    "weights",
    "values",
    "result",
    "n_in",
    "buf",
]


INPUT_LIMITS = {"int": 1000, "long long": 1000, "float": 512, "double": 512}


@dataclass
class Parameter:
    """A parameter of the kernel, and what the host hands over for it."""

    text: str
    argument: Node


def array_parameters(g, pattern):
    """The arrays of a kernel; one that it writes, at least."""
    names = g.random.sample(PARAMETER_NAMES, 7)
    found, before = [], []
    slots = g.integer(0, 2)
    const = g.pick(["const {} *{}", "{} const* {}", "const {}* {}"])
    restrict = g.pick(["", "", "", " __restrict__"])
    for slot in range(slots):
        t, name = g.type(), names.pop()
        text = (
            const.format(g.spelled(t), "\0")
            .replace("*", "*" + (restrict + " ") * bool(restrict))
            .replace("\0", name)
        )
        found.append(Parameter(text, Node(f"in<{t}>({slot})")))
        g.inputs.append(an_input(name, t, "pointer to const"))
    outs = []
    for slot in range(g.integer(1, 2)):
        t, name = g.type(), names.pop()
        alias = g.unique("Ptr") if g.chance(0.1) else ""
        if alias:
            g.add_top(g.pick([f"typedef {t}* {alias};", f"using {alias} = {t}*;"]))
            g.note("pointer by a typedef")
        stars = g.pick(["{}* {}", "{} *{}", "{}* const {}"]).replace(
            "* ", f"*{restrict} " if not alias else "* "
        )
        text = f"{alias} {name}" if alias else stars.format(g.spelled(t), name)
        before.append(f"{t}* o{slot} = out<{t}>({slot});")
        found.append(Parameter(text, Node(f"o{slot}")))
        outs.append((name, t))
        if not restrict and g.chance(0.2):
            same = names.pop()
            g.note("two parameters for one array")
            found.append(Parameter(f"const {t}* {same}", Node(f"o{slot}")))
            g.same_arrays.append((same, t))
    return found, outs, before


def an_input(name, t, form, length=256):
    """An array that nobody writes."""
    low, high = (-INPUT_LIMITS[t], INPUT_LIMITS[t]) if t in INPUT_LIMITS else KINDS[t].range
    return Name(name, t, form, length, writable=False, low=low, high=high)


def scalar_parameters(g):
    """Numbers and structs by value; host code writes them down."""
    found = []
    for _ in range(g.integer(0, 2)):
        t, name = g.pick(["int", "float", "unsigned", "long long", "short", "double"]), g.fresh()
        value = g.integer(0, 60)
        const = g.chance(0.3)
        writable = not const and g.chance(0.5)
        g.note("parameter that changes" if writable else "scalar parameter")
        found.append(Parameter(("const " * const) + f"{t} {name}", Node(f"({t}){value}")))
        low, high = (None, None) if writable else (value, value)
        g.declare(Name(name, t, writable=writable, uniform=not writable, low=low, high=high))
    if g.chance(0.25):
        struct, name = some_struct(g), g.fresh()
        g.note("struct parameter")
        found.append(
            Parameter(f"{g.pick(['', 'const '])}{struct.name} {name}", struct_argument(g, struct))
        )
        g.declare(
            Name(
                name,
                "",
                "struct",
                writable=found[-1].text[:5] != "const",
                uniform=found[-1].text[:5] == "const",
                struct=struct,
            )
        )
    return found


def struct_argument(g, struct):

    return Node(struct.name, initial(g, struct, lambda t: literal_of(g, t)))


def constants(g):
    """Constants, tables and variables at file scope."""
    for form in (
        "const",
        "constexpr",
        "enum",
        "enum class",
        "define",
        "__constant__",
        "__device__ const",
        "__device__",
        "template constant",
    ):
        if not g.chance(0.14) or not g.allows(form):
            continue
        g.note("file scope " + form)
        name, value = g.unique(g.pick(["K", "N", "limit"])), g.integer(1, 40)
        if form in ("__constant__", "__device__ const", "__device__"):
            table(g, form, name)
            continue
        line = {
            "const": f"const int {name} = {value};",
            "constexpr": f"constexpr unsigned {name} = {value};",
            "enum": f"enum E{name} {{ {name} = {value}, {name}_2 }};",
            "enum class": f"enum class E{name} : int {{ a = {value} }};",
            "define": f"#define {name} ({value})",
            "template constant": f"template <typename T> constexpr T {name}_t = T({value});",
        }[form]
        g.add_top(line)
        word = {
            # Values: a reference would need the host's variable.
            "const": f"(+{name})",
            "constexpr": f"(+{name})",
            "enum class": f"(int)E{name}::a",
            "template constant": f"(+{name}_t<int>)",
        }.get(form, name)
        t = "unsigned" if form == "constexpr" else "int"
        g.declare(Name(word, t, writable=False, uniform=True, low=value, high=value))
    if g.chance(0.12) and g.allows("macro"):
        g.note("macro named like a variable")
        g.add_top("#define acc(x) ((x) + 1)\n#define val(a, b) ((a) * (b))")
        g.macros += ["acc", "val"]
        g.taken |= {"acc", "val"}
        g.declare(Name("acc", "int"))
        g.declare(Name("val", "unsigned"))
        g.first_lines.append(Node("int acc = 3; unsigned val = 5;\n"))


def table(g, form, name):
    """An array in constant memory or of the device; a plain __device__ one takes atomics."""
    if form == "__device__":
        t = g.pick(["int", "unsigned", "unsigned long long"])
        g.add_top(f"__device__ {t} {name}[16] = {{1, 2, 3}};")
        g.counts_of_all.append((name, t, g.pick(["atomicAdd", "atomicMax"])))
        g.symbols.append((name, t, 16))
        return
    t = g.type()
    values = ", ".join(str(g.integer(0, 99)) for _ in range(8))
    g.add_top(f"{form} {t} {name}[8] = {{{values}}};")
    g.inputs.append(Name(name, t, form + " table", 8, writable=False, low=0, high=99))
