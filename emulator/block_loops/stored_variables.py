"""Writes statements whose variables may lie in arrays with an element a thread.

Such a variable lives across a barrier, or across the start or end of a loop that a chunk of threads
takes together (scalar expansion). It is loaded before the statements that name it, and stored
behind them; what may have an address is used where it lies.
"""

import re

from block_loops.vector_groups import VectorGroups, declared
from cuda_source.statements import QUALIFIERS, TYPE_WORDS
from cuda_source.tokens import Edit

LEAVE = "{ emulator_left[emulator_row + threadIdx.x] = true; return; }"


class StoredVariables(VectorGroups):
    """The text of a region's statements."""

    def declarations(self, variables):
        """The code that declares these variables."""
        return "".join(self.kernel.declaration(v) for v in variables)

    def text_of(self, statements):
        """The text of statements, returns turned into marks where a barrier follows."""
        edits = []
        if self.kernel.has_barrier and not self.kernel.is_final(self.statements):
            edits = [s for statement in statements for s in statement.walk() if s.kind == "return"]
        tokens = self.kernel.tokens.all
        edits = [Edit(tokens[s.first].start, tokens[s.last].end, LEAVE) for s in edits]
        edits += self.edits
        parts = []
        for statement in statements:
            if self.is_chosen and statement in self.choices:
                parts.append("{ %s }" % self.code(statement.then.first, statement.then.last, edits))
            elif statement.kind == "declaration" and not statement.variables[0].is_shared:
                parts += [self.declared_text(v) for v in statement.variables]
            elif statement.kind == "expression":
                # In brackets, a declaration that was taken for an expression does not compile.
                parts.append("(%s);" % self.code(statement.first, statement.last - 1, edits))
            else:
                parts.append(self.code(statement.first, statement.last, edits))
        return " ".join(parts)

    def declared_text(self, variable):
        """A declaration; of a kept array as a reference to its place."""
        stored = variable in self.kernel.stored or variable in self.kept
        if not stored or not self.kernel.by_reference(variable):
            return self.kernel.declaration(variable) + self.claim(variable)
        is_constant = {"const", "constexpr"} & set(variable.specifiers) and not variable.stars
        return ("const " if is_constant else "") + self.reference(variable) + self.begun(variable)

    def claim(self, variable):
        """What is believed of the type of a variable that a cut leaves where it is."""
        known = QUALIFIERS | TYPE_WORDS | self.kernel.program.aliases.keys()
        if set(variable.specifiers) <= known or not self.is_cut or "*" in variable.stars:
            return ""
        return "EMULATOR_KEEPS_NO_ADDRESS(%s) " % variable.name

    def begun(self, variable):
        """Gives a kept variable its first value: an object where it lies, since it may keep its
        own address; a number by a copy."""
        name, words = variable.name, set(variable.type.replace("*", " ").split())
        is_number = words <= TYPE_WORDS | {"const"} or "*" in variable.stars
        kind = "emulator_%s_%s" % ("kind" if variable in self.kept else "type", name)
        place = "::emulator::place_of(%s)" % name
        new = "::new (%s) %s" % (place, kind)
        if variable.initial is None:
            return "" if is_number else new + "; "  # members may have values to begin with
        if is_number:
            value = "emulator_value_%s" % name
            named = r"\b%s\b" % re.escape(name)
            copy = re.sub(named, value, self.kernel.declaration(variable), count=1)
            return "{ %s ::std::memcpy(%s, &%s, sizeof %s); } " % (copy, place, value, value)
        text, style = self.code(*variable.initial), variable.style
        if style == "=" and text.lstrip().startswith("{"):
            return "%s %s; " % (new, text)
        if style == "=":  # what is no copy would call other constructors
            return "static_assert(::emulator::is_copy<%s, decltype(%s)>); %s(%s); " % (
                kind, self.code(*variable.initial, asks=False), new, text)  # fmt: skip
        return "%s%s; " % (new, "{%s}" % text if style == "{" else "(%s)" % text)

    def place(self, variable):
        """Where a thread's own value of a kept variable lies."""
        if variable in self.kept:
            return "emulator_some_%s[emulator_t]" % variable.name
        return "emulator_all_%s[emulator_row + threadIdx.x]" % variable.name

    def reference(self, variable):
        """The code that names a thread's own copy of a variable like the variable."""
        kind = "some" if variable in self.kept else "all"
        kind, name = "type" if kind == "all" else "kind", variable.name
        return "emulator_%s_%s& %s = %s; " % (kind, name, name, self.place(variable))

    def with_kept(self, statements, text):
        """Text between the loads and the stores of what lives longer than the statements."""
        before = after = ""
        own = declared(statements)
        changed = self.analysis.names(*self.span(statements))
        for variable in self.kernel.stored + [v for v in self.kept if v not in self.moved]:
            if variable not in changed and variable not in own:
                continue
            by_reference = self.kernel.by_reference(variable)
            if variable not in own:
                is_constant = not self.is_changed(variable, statements)
                const = "const " if is_constant or "const" in variable.specifiers else ""
                before += self.reference(variable) if by_reference else "%s %s%s = %s; " % (
                    variable.type, const, variable.name, self.place(variable))  # fmt: skip
            if not by_reference and (variable in own or self.is_changed(variable, statements)):
                after += "%s = %s; " % (self.place(variable), variable.name)
        return before + text + " " + after

    def is_changed(self, variable, statements):
        first, last = self.span(statements)
        return any(first <= i <= last for i in self.analysis.changes[variable])

    def arrays(self, statements):
        """Arrays for what the threads of a chunk keep across a loop's start or end."""
        return "".join(
            "typedef %s emulator_kind_%s%s; emulator_kind_%s emulator_some_%s[emulator_n]; "
            % (v.type, v.name, self.kernel.dimensions(v), v.name, v.name)
            for v in declared(statements)
            if v in self.kept and v not in self.moved
        )

    def moves(self, body, back):
        """Copies what lives across barriers to or from arrays of the chunk."""
        text = ""
        for variable in self.moved:
            near = "emulator_some_" + variable.name
            far = "emulator_all_%s[emulator_row + emulator_x + emulator_t]" % variable.name
            if not back:
                text += "emulator_type_%s %s[emulator_n]; " % (variable.name, near)
            pair = (far, near + "[emulator_t]") if back else (near + "[emulator_t]", far)
            if back or variable not in declared(body):
                text += '_Pragma("omp simd") EMULATOR_SIDE_BY_SIDE %s = %s; ' % pair
        return text
