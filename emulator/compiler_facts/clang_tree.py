"""Reads what clang understood of a source: its tree, as -ast-dump writes it.

There each use of a variable is a DeclRefExpr, and what is made of it stands above it: a cast that
reads its value, an assignment to it, an & or a reference that it becomes. What is not surely a use
of the value alone is an address taken, and so is any cast by which a constant might change.
"""

import re

# With -E, zig c++ prints what is written and looks for no object file.
OPTIONS = ("-w", "-fno-color-diagnostics", "-E", "-Xclang", "-ast-dump")
TOP = re.compile(r"\n[|`]-")
LINE = re.compile(r"([| ]*[|`]-)(\w*)(.*)")
NUMBERED = re.compile(r" emulator_number_(\d+)\b")
VARIABLE = re.compile(r" lvalue (?:Var|ParmVar|Binding|Decomposition) (0x[0-9a-f]+) '(\w+)'")
CAST = re.compile(r" <(\w+)>(?: part_of_explicit_cast)?(?: \w+=\w+)*$")
OPERATOR = re.compile(r" '(=|,)'(?: \w+=\w+)*$")
COUNTS = re.compile(r" (prefix|postfix) '(?:\+\+|--)'")
# A copy in a second version, of a type which is said there to be copied member by member.
COPY = re.compile(r" emulator_as_(\w+) 'const decltype\(\1\)'")
# One of CUDA's short vectors, copied or assigned as the language itself does it.
_VECTOR = r"((?:u?(?:char|short|int|long|longlong)|float|double)[1-4])"
MADE = re.compile(r"'(?:const )?%s' 'void \((?:const \1 &|\1 &&)\) noexcept'" % _VECTOR)
ASSIGNED = re.compile(r"'%s &\(\*\)\((?:const \1 &|\1 &&)\) noexcept'" % _VECTOR)
FUNCTIONS = {"FunctionDecl", "CXXMethodDecl"}
READS = {"LValueToRValue", "LValueToRValueBitCast", "ToVoid"}
# What gives the same variable, or a part of it.
PLACES = {"ParenExpr", "ExprWithCleanups", "MemberExpr", "ArraySubscriptExpr"}
# What does nothing with an expression's value, or asks for its type alone.
STATEMENTS = {
    "CompoundStmt", "IfStmt", "ForStmt", "CXXForRangeStmt", "WhileStmt", "DoStmt", "SwitchStmt",
    "CaseStmt", "DefaultStmt", "LabelStmt", "AttributedStmt", "UnaryExprOrTypeTraitExpr",
}  # fmt: skip


class Node:
    """A line of the tree: what it is, and the rest of the line."""

    def __init__(self, kind, text, parent):
        self.kind, self.text, self.parent = kind, text, parent
        self.children, self.variable = [], None
        self.number = parent and parent.number  # of the second version that it is in
        self.is_pattern = bool(parent) and (parent.is_pattern or is_pattern(self))
        self.place = len(parent.children) if parent else 0
        if parent:
            parent.children.append(self)

    def is_lvalue(self):
        """Whether it gives a place, and no value."""
        return "' lvalue" in self.text

    def cast(self):
        """What a cast does."""
        found = CAST.search(self.text) if self.kind.endswith("CastExpr") else None
        return found and found.group(1)

    def operator(self):
        """The = or , that it is."""
        found = OPERATOR.search(self.text) if self.kind == "BinaryOperator" else None
        return found and found.group(1)

    def counts(self):
        """Whether it is ++ or --, and where that stands."""
        found = COUNTS.search(self.text) if self.kind == "UnaryOperator" else None
        return found and found.group(1)


def is_pattern(node):
    """Whether a node is of a template itself, whose instances follow, or a lambda's body, which
    stood before in the lambda's class."""
    above = node.parent
    if above.kind == "FunctionTemplateDecl" and node.kind in FUNCTIONS:
        return not any(other.kind in FUNCTIONS for other in above.children)
    return above.kind == "LambdaExpr" and node.kind == "CompoundStmt"


def seen(dump, believed):
    """{number: names} of the variables whose addresses are taken, as a dump says.

    Args:
        dump: what clang wrote.
        believed: {number: names} of variables whose addresses nobody should have.
    """
    found = {}
    for part in TOP.split(dump):
        if NUMBERED.search(part):
            for node in variables("|-" + part):
                number, (_, name) = node.number, node.variable
                if name in believed.get(number, ()) and not node.is_pattern and gives_away(node):
                    found.setdefault(number, set()).add(name)
    return found


def variables(part):
    """The nodes of a part of the tree that name variables."""
    path, named = [], []
    for line in LINE.finditer(part):
        depth = len(line.group(1)) // 2 - 1
        del path[depth:]
        node = Node(line.group(2), line.group(3), path[-1] if path else None)
        path.append(node)
        number = NUMBERED.search(node.text) if node.kind == "ParmVarDecl" else None
        if number and node.parent:
            node.parent.number = int(number.group(1))
        variable = VARIABLE.search(node.text) if node.kind == "DeclRefExpr" else None
        if variable:
            node.variable = variable.groups()
            named.append(node)
    return named


def gives_away(node):
    """Whether what is done with a variable may be more than to read it or to assign to it."""
    while node.parent:
        above = node.parent
        if is_end(node, above):
            return False
        if not leads_on(node, above):
            return True
        node = above
    return True


def is_end(node, above):
    """Whether nothing but a variable's value goes on, if that."""
    if above.kind in STATEMENTS or above.cast() in READS or above.counts() == "postfix":
        return True
    if above.kind in ("LambdaExpr", "CapturedStmt"):
        return is_capture(node, above)
    if above.kind == "CXXConstructExpr":
        return bool(COPY.search(above.parent.text) or MADE.search(above.text))
    if above.kind == "CXXOperatorCallExpr":
        return node.place == 2 and assigns_vector(above)
    return node.place == 0 and above.operator() == ","


def leads_on(node, above):
    """Whether what a node is in gives the variable itself, or a part of it."""
    if above.kind == "ArraySubscriptExpr" and node.cast() == "ArrayToPointerDecay":
        return True
    if above.cast() == "ArrayToPointerDecay":
        return above.parent.kind == "ArraySubscriptExpr"
    if not above.is_lvalue():
        return False
    if node.place == 0:
        assigns = above.kind == "CompoundAssignOperator" or above.operator() == "="
        is_same = above.kind == "ImplicitCastExpr" and above.cast() == "NoOp"
        return assigns or is_same or above.kind in PLACES or above.counts() == "prefix"
    if above.kind == "CXXOperatorCallExpr":
        return node.place == 1 and assigns_vector(above)
    return above.kind == "ConditionalOperator" or above.operator() == ","


def assigns_vector(node):
    """Whether an operator is the assignment of one of CUDA's short vectors."""
    return bool(ASSIGNED.search(node.children[0].text))


def is_capture(node, above):
    """Whether a lambda gets a variable as itself: under its own name, by which it is seen there.

    In `[&other = v]`, it is not.
    """
    if above.kind == "CapturedStmt":
        return True
    variable = node.variable and node.variable[0]
    captures = [n for n in above.children if n.variable and n.variable[0] == variable]
    return len(captures) == 1 and any(is_named(variable, inner) for inner in above.children)


def is_named(variable, node):
    """Whether a variable is used in what a node holds, but to capture it once more."""
    for inner in node.children:
        is_use = inner.variable and "non_odr_use" not in inner.text
        if is_use and inner.variable[0] == variable and node.kind != "LambdaExpr":
            return True
        if is_named(variable, inner):
            return True
    return False
