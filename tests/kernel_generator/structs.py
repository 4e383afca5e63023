"""Structs of a kernel: members, arrays, structs in structs, member functions and operators."""

from dataclasses import dataclass

from .number_types import KINDS
from .tree import Node, joined


@dataclass
class Member:
    """A member of a struct."""

    name: str
    type: str
    length: int = 0
    struct: object = None


@dataclass
class Struct:
    """A struct at file scope or in a kernel; `main` is the member that its functions change."""

    name: str
    members: list
    functions: dict
    aggregate: bool = True

    @property
    def main(self):
        return self.members[0]


FUNCTIONS = {
    "add": "__device__ void add({t} k) {{ {m} += k; }}",
    "add this": "__device__ void add_this({t} k) {{ this->{m} += k; }}",
    "get": "__device__ {t} get() const {{ return {m}; }}",
    "chain": "__device__ {S}& chain({t} k) {{ {m} += k; return *this; }}",
    "+=": "__device__ {S}& operator+=({t} k) {{ {m} += k; return *this; }}",
    "++": "__device__ {S}& operator++() {{ {m} += 1; return *this; }} __device__ "
    "{S} operator++(int) {{ {S} old = *this; {m} += 1; return old; }}",
    "()": "__device__ void operator()({t} k) {{ {m} += k; }}",
    "[]": "__device__ {t}& operator[](int) {{ return {m}; }} "
    "__device__ const {t}& operator[](int) const {{ return {m}; }}",
    "at": "__device__ {t}& at() {{ return {m}; }} __device__ "
    "{t} at() const {{ return ({t})({m} / 2); }}",
    "touch": "__device__ {t} touch() {{ {m} += 1; return {m}; "
    "}} __device__ {t} touch() const {{ return {m}; }}",
    "template": "template <typename U> __device__ void take(U k) {{ {m} += ({t})k; }}",
    "lambda": "__device__ void through({t} k) {{ auto f = [this](int "
    "j) {{ {m} += ({t})j; }}; f(1); f(2); {m} += k; }}",
    "later": "__device__ void later({t} k);",
    "friend": "friend __device__ inline void nudge_{S}({S}& s, {t} k) {{ s.{m} += k; }}",
    "conversion": "__device__ explicit operator {t}() const {{ return {m}; }}",
    "static": "static __device__ void of({S}& s, {t} k) {{ s.{m} += k; }}",
    "default argument": "__device__ void more({t} k = 1) {{ {m} += k; }}",
}
LATER = "__device__ inline void {S}::later({t} k) {{ {m} += k; }}"


def members_of(g, depth):
    """The members of a new struct; the first one is a scalar."""
    names = g.random.sample(
        ["n", "m", "u", "lo", "hi", "x", "y", "count", "sum", "w"], g.integer(2, 4)
    )
    members = [Member(names[0], g.type())]
    for name in names[1:]:
        if depth and g.structs and g.chance(0.2):
            g.note("struct in a struct")
            members.append(Member(name, "", struct=g.pick(g.structs)))
        elif g.chance(0.25):
            g.note("array in a struct")
            members.append(Member(name, g.type(), g.integer(2, 4)))
        else:
            members.append(Member(name, g.type()))
    return members


def member_text(g, member):
    """The declaration of a member."""
    type_name = member.struct.name if member.struct else g.spelled(member.type)
    return f"{type_name} {member.name}{f'[{member.length}]' if member.length else ''};"


def new_struct(g, local=False):
    """A struct of this kernel; a local one stands in the kernel, without templates."""
    name = g.unique("S")
    struct = Struct(name, members_of(g, 1), {})
    words = {"t": struct.main.type, "m": struct.main.name, "S": name}
    chosen = g.random.sample(list(FUNCTIONS), g.integer(2, 6))
    functions = []
    for key in chosen:
        if local and key in ("template", "later", "friend"):
            continue
        g.note("struct function " + key)
        struct.functions[key] = True
        functions.append(Node(" " + FUNCTIONS[key].format(**words), drop=True))
    fields = " ".join(member_text(g, m) for m in struct.members)
    form = g.pick(["struct", "struct", "class", "typedef"]) if not local else "struct"
    head = f"class {name} {{ public: " if form == "class" else f"struct {name} {{ "
    parts = [head, fields, joined(functions), " };"]
    if form == "typedef":
        alias = g.unique("T")
        parts.append(f" typedef {name} {alias};")
        g.note("struct by a typedef")
    if local:
        return struct, Node(*parts)
    g.add_top(*parts)
    if "later" in struct.functions:
        g.add_top(LATER.format(**words))
    g.structs.append(struct)
    return struct, None


def some_struct(g):
    """A struct, new or not."""
    if g.structs and g.chance(0.6):
        return g.pick(g.structs)
    return new_struct(g)[0]


def initial(g, struct, make):
    """{a, b, {c, d}}: a value for each member, where make(type) gives one."""
    parts = []
    for member in struct.members:
        if member.struct:
            parts.append(initial(g, member.struct, make))
        elif member.length:
            parts.append(
                Node("{", joined([make(member.type) for _ in range(member.length)], ", "), "}")
            )
        else:
            parts.append(make(member.type))
    return Node("{", joined(parts, ", "), "}")


def literal_of(g, type_name):
    """A number for a member; braces allow no narrowing."""
    if KINDS[type_name].real:
        return Node(g.pick(["0.5f", "1.f", "2.0f", "0"]))
    return Node(str(g.integer(0, 99)), simpler=[Node("0")])
