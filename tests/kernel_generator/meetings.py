"""Chooses what threads do together, and declares the arrays that they share."""

from . import exchanges, flow, warps
from . import expressions as e
from .conversions import cast, integral
from .structs import some_struct
from .tree import statement


def exchange(g):
    """Something that the threads of a block do together."""
    ways = {**exchanges.EXCHANGES, **warps.WARPS} if g.full_warps else exchanges.EXCHANGES
    way = g.weighted({name: weight for name, (_, weight) in ways.items()})
    g.note("exchange " + way)
    g.fibers = True
    shared = g.pick(g.shared)
    g.note(f"shared {shared.form} array")
    return ways[way][0](g, shared)


def atomic(g):
    """An atomic of global memory, whose result is not used."""
    if not g.counts_of_all:
        return flow.changed(g)
    name, t, op = g.pick(g.counts_of_all)
    v = e.stored(g, t, 1, 100)
    g.note("atomic of global memory " + op)
    index = integral(g, e.value(g, 1)).node
    return statement(f"{op}(&{name}[(", index, ") & 15], ", cast(g, t, v.node), ");")


def shared_arrays(g):
    """Declares the kernel's shared arrays, in all forms."""
    for number in range(g.integer(1, 2)):
        t = g.type(without=("char", "signed char"))
        name = g.unique(g.pick(["s", "tile", "buffer"]))
        form = g.pick(
            ["flat", "flat", "flat", "dynamic", "grid", "padded", "struct", "two", "macro"]
        )
        if form == "dynamic" and g.dynamic:
            form = "flat"
        g.note("shared " + form)
        length = g.pick([str(exchanges.THREADS), "2 * 128", f"{exchanges.THREADS} + 1"])
        if form == "dynamic":
            g.dynamic = t
            line = f"extern __shared__ {t} {name}[];"
        elif form in ("grid", "padded"):
            columns = g.pick([8, 16, 32])
            line = (
                f"__shared__ {t} "
                f"{name}[{exchanges.THREADS // columns}][{columns}{' + 1' * (form == 'padded')}];"
            )
            g.shared.append(exchanges.Shared(name, t, "grid", columns))
        elif form == "struct":
            struct = some_struct(g)
            line = f"__shared__ {struct.name} {name}[{exchanges.THREADS}];"
            g.shared.append(exchanges.Shared(name, struct.main.type, "struct", struct=struct))
        elif form == "two":
            line = f"__shared__ {t} {name}[{length}], {name}_2[{exchanges.THREADS}];"
        elif form == "macro":
            word = g.macro("SHARED", "(T, name)", f"__shared__ T name[{exchanges.THREADS}]")
            line = f"{word}({t}, {name});"
        else:
            line = g.pick(
                [
                    f"__shared__ {t} {name}[{length}];",
                    f"{t} __shared__ {name}[{length}];",
                    f"static __shared__ {t} {name}[{length}];",
                    f"__shared__ __align__(16) {t} {name}[{length}];",
                ]
            )
        if form in ("flat", "dynamic", "two", "macro"):
            g.shared.append(exchanges.Shared(name + "_2" * (form == "two" and number), t))
        g.shared_lines.append(statement(line))
