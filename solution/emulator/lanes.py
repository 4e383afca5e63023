"""Writes the loops over threads for a run: statements without a barrier.

    thread by thread     for y, for x: the statements
    rows                 the conditions that the statements stand under are checked for all
                         threads of a row first, so that what remains has none
    chunks               neighbouring threads take each turn of a uniform loop together: their
                         sums are independent, so that a CPU adds several at once

Each thread does the same operations in the same order in all three.
"""

from analysis import ALIKE, CONSECUTIVE, FIXED
from cuda_tokens import Edit

LEAVE = "{ emulator_left[emulator_row + threadIdx.x] = true; return; }"


class Run:
    """Writes one run of a kernel."""

    def __init__(self, kernel, statements):
        self.kernel, self.statements = kernel, statements
        self.analysis, self.code = kernel.analysis, kernel.code
        self.guards = []  # declarations, and (condition, whether it must hold)
        self.plain = set()  # variables of this run alone that may be computed again
        self.loops = {}  # loops that chunks of threads take together, with their variables
        self.ahead = []  # tokens at which `p[i]` begins that may be read ahead
        self.edits, self.loads = [], ""  # what that changes
        self.moved = []  # variables that live across a barrier, while a chunk runs
        self.compared = []  # variables that grow by 1, or are the same, in a row or chunk
        self.kept = []  # variables that live across the start or end of such a loop

    def write(self):
        """The run as text."""
        body = self.peel(self.statements)
        if self.may_go_together(body):
            self.find_loops(body)
            if self.loops and self.keep(body):
                self.kernel.has_lanes = True
                return self.rows(body, True)
            if all(s.kind in ("expression", "declaration", "empty") for s in body):
                return self.rows(body, False)
        return self.one_by_one()

    # The conditions around the body

    def peel(self, statements):
        """Notes declarations and conditions at the beginning; returns the rest."""
        while statements:
            first = statements[0]
            if first.kind == "declaration" and first.variables[0] in self.analysis.plain:
                self.guards.append(first.variables[0])
            elif first.kind == "if" and first.otherwise is None and self.may_guard(first):
                if is_return(first.then):
                    self.guards.append((first.condition, False))
                elif len(statements) == 1:
                    self.guards.append((first.condition, True))
                    inner = self.kernel.listed(first.then)
                    self.find_plain(inner)
                    return self.peel(inner)
                else:
                    break
            elif first.kind != "empty":
                break
            statements = statements[1:]
        return statements

    def may_guard(self, statement):
        if is_return(statement.then) and not self.kernel.is_final(self.statements):
            return False
        return self.analysis.is_plain(statement.condition)

    def find_plain(self, statements):
        """Finds variables of an inner block that may be computed again."""
        for statement in statements:
            if statement.kind == "declaration":
                for variable in statement.variables:
                    self.kernel.try_plain(variable)

    def may_go_together(self, body):
        """Whether the body may run for several threads at once, in any order."""
        function = self.kernel.function
        assigned = any(
            self.analysis.changes[p] or p in self.analysis.pinned
            for p in function.parameters
            if p not in self.analysis.uniform or not self.kernel.has_barrier
        )
        known = not any(s.kind == "other" for s in function.block.walk())
        shared = any(v.is_shared for v in declared_within(self.statements))
        return (
            known and not assigned and not shared and bool(body)
            and not any(has_return(statement) for statement in body)
        )  # fmt: skip

    # Loops that several threads take together

    def is_fixed(self, part, variables=()):
        """Whether an expression is the same for the threads of a chunk."""
        analysis = self.analysis
        allowed = analysis.uniform | analysis.plain | set(variables)
        allowed |= {v for group in self.loops.values() for v in group}
        if part[0] > part[1]:
            return True
        return not analysis.varies(part) and all(
            analysis.is_allowed(i, allowed, True) for i in range(part[0], part[1] + 1)
        )

    def find_loops(self, statements):
        """Finds the uniform loops in a list of statements, outer ones first."""
        program, tokens = self.kernel.program, self.kernel.tokens
        if any(program.is_ordered(s.first, s.last, tokens) for s in statements):
            return
        self.find_plain(statements)
        for statement in statements:
            if statement.kind == "for" and self.is_together(statement):
                self.loops[statement] = statement.initial.variables
                self.kernel.steady |= set(statement.initial.variables)
                self.analysis.uniform |= set(statement.initial.variables)
                self.find_loops(self.kernel.listed(statement.inner))
            elif statement.kind == "block":
                self.find_loops(statement.body)

    def is_together(self, statement):
        variables = getattr(statement.initial, "variables", [])
        if not variables or has_return(statement) or leaves_loop(statement.inner):
            return False
        for variable in variables:
            if variable.initial is None or not self.is_fixed(variable.initial):
                return False
            if variable.dimensions or variable.is_reference or variable in self.analysis.pinned:
                return False
            first, last = statement.step
            if not all(first <= i <= last for i in self.analysis.changes[variable]):
                return False
        return self.is_fixed(statement.condition, variables) and self.is_step(statement, variables)

    def is_step(self, statement, variables):
        """Whether the third part of a loop's head changes its own variables alone."""
        for i in range(statement.step[0], statement.step[1] + 1):
            owner = self.analysis.owner.get(i)
            if owner is not None and self.analysis.is_changed(owner, i):
                if owner not in variables:
                    return False
            elif self.kernel.text(i) != "=" and not self.is_fixed((i, i), variables):
                return False
        return True

    def keep(self, body):
        """Finds what lives across a loop's start or end; False if it cannot be kept."""
        pieces = [piece for kind, piece in self.pieces(body) if kind == "lanes"]
        for piece in pieces:
            for variable in declared(piece):
                if variable in self.analysis.plain or variable in self.kernel.stored:
                    continue
                if any(not (piece[0].first <= i <= piece[-1].last) for i in variable.uses):
                    if self.kernel.storage_problem(variable):
                        return False
                    self.kept.append(variable)
        # What lives across barriers is near at hand meanwhile.
        names = self.analysis.names(*self.span(body)) | set(declared(body))
        self.moved = [v for v in self.kernel.stored if v in names and not self.by_reference(v)]
        self.kept += self.moved
        return True

    def pieces(self, statements):
        """The parts of a list: loops and blocks that are cut, and ("lanes", statements)."""
        piece = []
        for statement in statements:
            inner = statement.kind == "block" and any(s in self.loops for s in statement.walk())
            if statement not in self.loops and not inner:
                if not self.is_computed(statement):
                    piece.append(statement)
                    continue
                yield "plain", statement  # does not cut
                continue
            if piece:
                yield "lanes", piece
            piece = []
            yield "open", statement
            yield from self.pieces(self.kernel.listed(statement.inner if not inner else statement))
            yield "close", statement
        if piece:
            yield "lanes", piece

    def is_computed(self, statement):
        """Whether a statement declares nothing but what may be computed again."""
        return statement.kind == "empty" or (
            statement.kind == "declaration"
            and all(v in self.analysis.plain for v in statement.variables)
        )

    # Text

    def needed(self, first, last, but=()):
        """The plain variables that a range of tokens needs, in the order of their declarations."""
        found, todo = set(), self.analysis.names(first, last)
        while todo:
            variable = todo.pop()
            if variable in self.analysis.plain and variable not in found:
                found.add(variable)
                todo |= self.analysis.names(*variable.initial)
        return sorted(found - set(but), key=lambda v: v.initial[0])

    def declarations(self, variables):
        return "".join(self.kernel.declaration(v) for v in variables)

    def span(self, statements):
        return statements[0].first, statements[-1].last

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
            if statement.kind == "declaration" and not statement.variables[0].is_shared:
                parts += [self.declared_text(v) for v in statement.variables]
            else:
                parts.append(self.code(statement.first, statement.last, edits))
        return " ".join(parts)

    def declared_text(self, variable):
        """A declaration; of a kept array as a reference to its place."""
        stored = variable in self.kernel.stored or variable in self.kept
        if not stored or not self.by_reference(variable):
            return self.kernel.declaration(variable)
        text = self.reference(variable)
        if variable.initial is None:
            return text
        value = "emulator_value_%s" % variable.name
        copy = self.kernel.declaration(variable).replace(variable.name, value, 1)
        return text + "{ %s ::std::memcpy(&%s, &%s, sizeof %s); } " % (
            copy, variable.name, value, value)  # fmt: skip

    def by_reference(self, variable):
        return variable.dimensions is not None or variable in self.analysis.pinned

    def place(self, variable):
        """Where a thread's own value of a kept variable lies."""
        if variable in self.kept:
            return "emulator_some_%s[emulator_l]" % variable.name
        return "emulator_all_%s[emulator_row + threadIdx.x]" % variable.name

    def reference(self, variable):
        kind = "some" if variable in self.kept else "all"
        return "emulator_%s_%s& %s = %s; " % (
            "type" if kind == "all" else "kind", variable.name, variable.name, self.place(variable))  # fmt: skip

    def with_kept(self, statements, text):
        """Text between the loads and the stores of what lives longer than the statements."""
        before = after = ""
        own = declared(statements)
        changed = self.analysis.names(*self.span(statements))
        for variable in self.kernel.stored + [v for v in self.kept if v not in self.moved]:
            if variable not in changed and variable not in own:
                continue
            by_reference = self.by_reference(variable)
            if variable not in own:
                const = "const " if "const" in variable.specifiers else ""
                before += self.reference(variable) if by_reference else "%s%s %s = %s; " % (
                    const, variable.type, variable.name, self.place(variable))  # fmt: skip
            if not by_reference and (variable in own or self.is_changed(variable, statements)):
                after += "%s = %s; " % (self.place(variable), variable.name)
        return before + text + " " + after

    def is_changed(self, variable, statements):
        first, last = self.span(statements)
        return any(first <= i <= last for i in self.analysis.changes[variable])

    def one_by_one(self):
        """All statements for one thread, then for the next."""
        changed = [p.name for p in self.kernel.function.parameters
                   if p not in self.analysis.uniform or not self.kernel.has_barrier
                   if self.analysis.changes[p] or p in self.analysis.pinned]  # fmt: skip
        own = declared_within(self.statements)
        needed = self.needed(*self.span(self.statements), but=own)
        text = self.declarations(needed) + self.text_of(self.statements)
        text = self.with_kept(self.statements, text)
        if changed or any(has_return(s) for s in self.statements):
            text = "[%s]() mutable EMULATOR_INLINE { %s }();" % (", ".join(["&"] + changed), text)
        left = "if (emulator_left[emulator_row + emulator_x]) continue; "
        return (
            "EMULATOR_ROWS { EMULATOR_ROW; (void)emulator_row; "
            "for (unsigned emulator_x = 0; emulator_x < blockDim.x; ++emulator_x) { %s"
            "EMULATOR_THREAD(emulator_x); %s } }" % (left if self.kernel.leaves_early else "", text)
        )

    def rows(self, body, chunks):
        """The body for a row of threads at a time, or for chunks of it."""
        own = [g for g in self.guards if not isinstance(g, tuple)]
        before = self.needed(*self.span(self.statements), but=own + declared_within(body))
        steady = [v for v in before + own if self.analysis.kinds[v] != FIXED]
        used = self.needed(*self.span(body))
        compared = self.compared = [v for v in steady if v in used and self.analysis.kinds[v] in (ALIKE, CONSECUTIVE)]
        if not chunks:
            self.find_ahead(body)
        return (
            "EMULATOR_ROWS { EMULATOR_ROW; (void)emulator_row; "
            + self.active(before, compared)
            + self.alike(compared)
            + self.ordered(before)
            + self.body(before + own, steady, body, chunks)
            + "::emulator::run_row<%s, %s>(blockDim.x, emulator_is_active, emulator_is_ordered, "
            "emulator_alike, emulator_body); }"
            % ("true" if chunks else "false", "true" if self.is_falling() else "false")
        )

    def active(self, before, compared):
        """A lambda: whether a thread runs the body, and the integers to compare."""
        parts = [self.declarations(before)]
        if self.kernel.leaves_early:
            parts.append("if (emulator_left[emulator_row + emulator_x]) return false; ")
        for guard in self.guards:
            if isinstance(guard, tuple):
                wanted = "!" if guard[1] else ""
                parts.append("if (%s(%s)) return false; " % (wanted, self.code(*guard[0])))
            else:
                parts.append(self.kernel.declaration(guard))
        found = "".join(
            "emulator_to[%d] = static_cast<long long>(%s); " % (i, v.name)
            for i, v in enumerate(compared)
        )
        return (
            "const auto emulator_active = [&](unsigned emulator_x, long long* emulator_to) "
            "EMULATOR_INLINE -> bool { EMULATOR_THREAD(emulator_x); %s"
            "if (emulator_to != nullptr) { %s } return true; }; "
            "const auto emulator_is_active = [&](unsigned emulator_x) EMULATOR_INLINE -> bool "
            "{ return emulator_active(emulator_x, nullptr); }; " % ("".join(parts), found)
        )

    def alike(self, compared):
        """A lambda: whether the integers of threads x .. x + n - 1 grow as they should."""
        checks = "".join(
            " && emulator_last[%d] - emulator_first[%d] == %s"
            % (i, i, "emulator_n - 1ll" if self.analysis.kinds[v] == CONSECUTIVE else "0")
            for i, v in enumerate(compared)
        )
        for i in self.ahead:
            array, index = self.analysis.owner[i], self.analysis.owner[i + 2]
            checks += " && ::emulator::is_readable(&%s[emulator_first[%d]], emulator_n)" % (
                array.name, compared.index(index))  # fmt: skip
        if not compared:
            return (
                "const auto emulator_alike = [](unsigned, unsigned) EMULATOR_INLINE -> bool "
                "{ return true; }; "
            )
        return (
            "const auto emulator_alike = [&](unsigned emulator_x, unsigned emulator_n) "
            "EMULATOR_INLINE -> bool { long long emulator_first[%d], emulator_last[%d]; "
            "return emulator_active(emulator_x, emulator_first) && "
            "emulator_active(emulator_x + emulator_n - 1, emulator_last)%s; }; "
            % (len(compared), len(compared), checks)
        )

    def is_falling(self):
        """Whether the active threads of a row come first, if its integers are consecutive."""
        kinds = [isinstance(guard, tuple) for guard in self.guards]
        if self.kernel.leaves_early or sorted(kinds) != kinds:
            return False
        return all(
            self.analysis.is_falling(condition, not wanted)
            for condition, wanted in (g for g in self.guards if isinstance(g, tuple))
        )

    def ordered(self, before):
        """Whether the integers of the conditions are consecutive in the row."""
        conditions = [guard[0] for guard in self.guards if isinstance(guard, tuple)]
        named = {v for part in conditions for v in self.analysis.names(*part)}
        own = [g for g in self.guards if not isinstance(g, tuple)]
        compared = [v for v in before + own if v in named and self.analysis.kinds[v] != FIXED]
        if not self.is_falling() or not compared:
            return "const bool emulator_is_ordered = true; "
        values = ", ".join("static_cast<long long>(%s)" % v.name for v in compared)
        needed = [v for v in before + own if v in compared or v in self.needed_by(compared)]
        checks = " && ".join(
            "emulator_last.at[%d] - emulator_first.at[%d] == blockDim.x - 1ll" % (i, i)
            for i in range(len(compared))
        )
        return (
            "struct emulator_values { long long at[%d]; }; "
            "const auto emulator_of = [&](unsigned emulator_x) EMULATOR_INLINE { "
            "EMULATOR_THREAD(emulator_x); %s return emulator_values{{%s}}; }; "
            "const emulator_values emulator_first = emulator_of(0), "
            "emulator_last = emulator_of(blockDim.x - 1); "
            "const bool emulator_is_ordered = %s; "
            % (len(compared), self.declarations(needed), values, checks)
        )

    def needed_by(self, variables):
        return {n for v in variables for n in self.needed(*v.initial)}

    def body(self, plain, steady, body, chunks):
        """A lambda: the body for threads x .. x + n - 1, n being an integer or Threads<n>."""
        text = "const auto emulator_body = [&](unsigned emulator_x, auto emulator_count) "
        text += "EMULATOR_INLINE { EMULATOR_UNREACHABLE_IF(emulator_x > 1023); "
        if chunks:
            text += "constexpr int emulator_n = decltype(emulator_count)::value; "
        else:
            text += "const int emulator_n = emulator_count; "
        text += "EMULATOR_THREAD(emulator_x); " + self.declarations(plain)
        for variable in self.compared:
            if self.analysis.kinds[variable] == CONSECUTIVE:
                text += "const %s emulator_first_%s = %s; " % (
                    variable.type, variable.name, variable.name)  # fmt: skip
        self.steady = list(steady)
        if not chunks:
            return text + self.whole_row(body) + " }; "
        text += self.moves(body, False)
        for kind, piece in self.pieces(body):
            if kind == "lanes":
                text += self.arrays(piece) + self.lanes(piece, '_Pragma("omp simd") ')
            elif kind == "plain":
                text += self.inner_plain(piece)
            elif kind == "open":
                head = "{" if piece.kind == "block" else self.head(piece)
                text += head + " "
            else:
                text += "} "
        return text + self.moves(body, True) + " }; "

    def find_ahead(self, body):
        """Finds `p[i]` behind ? or : that may be read whether or not it is chosen.

        Only where all of the row's lie in an allocation, which emulator_alike asks. A choice
        between two values that are both there is what a compiler can vectorise.
        """
        owner, text = self.analysis.owner, self.kernel.text
        consecutive = {v for v in self.compared if self.analysis.kinds[v] == CONSECUTIVE}
        for i in range(body[0].first, body[-1].last - 3) if body else ():
            array = owner.get(i)
            if text(i - 1) not in ("?", ":") or text(i + 4) not in (":", ";"):
                continue
            if array in self.kernel.function.parameters and array.stars == "*":
                if [text(i + 1), text(i + 3)] == ["[", "]"] and owner.get(i + 2) in consecutive:
                    if self.analysis.is_fixed(array) and "volatile" not in array.specifiers:
                        self.ahead.append(i)

    def whole_row(self, body):
        """The statements for a row, values read ahead; or, as they are, for a single thread."""
        as_they_are = self.lanes(body, "")
        if not self.ahead:
            return as_they_are
        tokens, loads = self.kernel.tokens.all, ""
        for i in self.ahead:
            loads += "const auto emulator_ahead_%d = %s; " % (i, self.code(i, i + 3))
            self.edits.append(Edit(tokens[i].start, tokens[i + 3].end, "emulator_ahead_%d" % i))
        self.loads = loads
        return (
            "if constexpr (::std::is_same<decltype(emulator_count), int>::value) { %s} else { %s}"
            % (self.lanes(body, ""), as_they_are)
        )

    def head(self, statement):
        """`for (...) {`"""
        tokens = self.kernel.tokens
        close = tokens.match_forward(statement.first + 1)
        return self.code(statement.first, close) + " {"

    def inner_plain(self, statement):
        """A declaration in the body: here for the first thread, again for each that differs."""
        if statement.kind == "empty":
            return ""
        text = ""
        for variable in statement.variables:
            text += self.kernel.declaration(variable)
            if self.analysis.kinds[variable] != FIXED:
                self.steady.append(variable)
        return text

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
            far = "emulator_all_%s[emulator_row + emulator_x + emulator_l]" % variable.name
            if not back:
                text += "emulator_type_%s %s[emulator_n]; " % (variable.name, near)
            pair = (far, near + "[emulator_l]") if back else (near + "[emulator_l]", far)
            if back or variable not in declared(body):
                text += '_Pragma("omp simd") EMULATOR_LANES %s = %s; ' % pair
        return text

    def lanes(self, statements, pragma):
        """Statements for each thread of a chunk."""
        needed = self.needed(*self.span(statements))
        text = ""
        for variable in self.steady:
            kind = self.analysis.kinds[variable]
            if variable not in needed or (kind == ALIKE and variable in self.compared):
                continue
            if kind == CONSECUTIVE and variable in self.compared:
                text += "const %s %s = static_cast<%s>(emulator_first_%s + static_cast<%s>(emulator_l)); " % (
                    (variable.type, variable.name) + (variable.type, variable.name, variable.type))  # fmt: skip
            else:
                text += self.kernel.declaration(variable)
        text += self.with_kept(statements, self.loads + self.text_of(statements))
        thread = "EMULATOR_THREAD(emulator_x + emulator_l); "
        return "%sEMULATOR_LANES { %s%s } " % (pragma, thread, text)


def is_return(statement):
    """Whether a statement is `return;`, perhaps in braces."""
    if statement.kind == "block" and len(statement.body) == 1:
        statement = statement.body[0]
    return statement.kind == "return" and statement.last == statement.first + 1


def has_return(statement):
    """Whether a thread may leave the function in a statement."""
    return any(inner.kind in ("return", "other") for inner in statement.walk())


def leaves_loop(statement):
    """Whether a break or continue in a statement belongs to a loop around it."""
    if statement.kind in ("break", "continue"):
        return True
    if statement.kind in ("for", "while", "do"):
        return False
    return any(leaves_loop(child) for child in statement.children())


def declared(statements):
    """The variables that statements declare, not within inner blocks."""
    return [v for s in statements if s.kind == "declaration" for v in s.variables]


def declared_within(statements):
    """The variables that are declared anywhere in statements."""
    found = [getattr(inner, "variables", []) for s in statements for inner in s.walk()]
    return [variable for group in found for variable in group]
