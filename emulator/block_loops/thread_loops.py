"""Writes the loops over threads for a run: statements without a barrier.

    thread by thread     for y, for x: the statements
    rows                 the conditions that the statements stand under are checked for all
                         threads of a row first, so that what remains has none
    chunks               neighbouring threads take each turn of a uniform loop together: their
                         sums are independent, so that a CPU adds several at once

Each thread does the same operations in the same order in all three.
"""

import re

from block_loops.uniformity import ALIKE, CONSECUTIVE, FIXED
from block_loops.vector_groups import Lanes, declared, declared_within, has_return
from cuda_source.functions import INDICES, ORDERED
from cuda_source.statements import QUALIFIERS, TYPE_WORDS
from cuda_source.tokens import Edit

LEAVE = "{ emulator_left[emulator_row + threadIdx.x] = true; return; }"


# How a kernel may know its threads for blocks to run side by side: BLOCK * SIZE + THREAD.
BLOCK, SIZE, THREAD = "blockIdx . x", "blockDim . x", "threadIdx . x"
FLAT = tuple(
    tuple(text.split())
    for product in (f"{BLOCK} * {SIZE}", f"{SIZE} * {BLOCK}")
    for start in (product, f"( {product} )")
    for text in (f"{start} + {THREAD}", f"{THREAD} + {start}")
)
# What may stand before that: nothing that takes a part of it for itself.
BEFORE_FLAT = ("=", "(", "[", ",", "{", "return", "<", ">", "<=", ">=", "==", "!=", "&&", "||")


def knows_flat_threads(kernel):
    """Whether a kernel knows its threads by their number in the grid alone, leaves no traces of
    their order, and calls no function of the program: the compiler refuses what is missed here."""
    tokens, function = kernel.tokens, kernel.function
    i, found = function.brace, False
    while i < function.end:
        length = flat_length(tokens, i)
        if length:
            found, i = True, i + length
            continue
        name = tokens.text(i)
        if name in INDICES or name in ORDERED or name in kernel.program.functions:
            return False
        i += 1
    return found


def flat_length(tokens, i):
    """How many tokens from i on are a thread's number in the grid; 0 if none."""
    for wanted in FLAT:
        end = i + len(wanted)
        if wanted == tuple(tokens.text(k) for k in range(i, end)):
            is_whole = tokens.text(i - 1) in BEFORE_FLAT
            return len(wanted) * (is_whole and tokens.text(end) not in ("*", "/", "%"))
    return 0


class Run(Lanes):
    """Writes one run of a kernel."""

    def write(self):
        """The run as text."""
        body = self.peel(self.statements)
        if self.may_go_together(body):
            self.find_loops(body)
            if self.loops and self.keep(body):
                self.kernel.has_lanes = self.is_cut = True
                return self.rows(body, True)
            self.find_choices(body)
            if all(
                s.kind in ("expression", "declaration", "empty") or s in self.choices for s in body
            ):
                return self.rows(body, False)
        return self.one_by_one()

    def declarations(self, variables):
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
        place = "const_cast<void*>(static_cast<const void*>(&%s))" % name
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
            return "emulator_some_%s[emulator_l]" % variable.name
        return "emulator_all_%s[emulator_row + threadIdx.x]" % variable.name

    def reference(self, variable):
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
            mutable = "mutable" if changed else "EMULATOR_INLINE"
            text = "[%s]() %s { %s }();" % (", ".join(["&"] + changed), mutable, text)
        left = "if (emulator_left[emulator_row + emulator_x]) continue; "
        return (
            "EMULATOR_ROWS { EMULATOR_ROW; (void)emulator_row; "
            "for (unsigned emulator_x = 0; emulator_x < emulator_width; ++emulator_x) { %s"
            "EMULATOR_THREAD(emulator_x); %s } }" % (left if self.kernel.leaves_early else "", text)
        )

    def rows(self, body, chunks):
        """The body for a row of threads at a time, or for chunks of it."""
        own = [g for g in self.guards if not isinstance(g, tuple)]
        before = self.needed(*self.span(self.statements), but=own + declared_within(body))
        steady = [v for v in before + own if self.analysis.kinds[v] != FIXED]
        used = self.needed(*self.span(body))
        compared = self.compared = [
            v for v in steady if v in used and self.analysis.kinds[v] in (ALIKE, CONSECUTIVE)
        ]
        if not chunks:
            self.find_ahead(body)
        conditions = self.guards or self.choices or self.ahead or self.kernel.leaves_early
        if not chunks and not compared and not conditions:
            return (
                "EMULATOR_ROWS { EMULATOR_ROW; (void)emulator_row; "
                "const unsigned emulator_x = 0; const int emulator_n = emulator_width; %s%s} "
                % (self.first_thread(before, steady), self.whole_row(body))
            )
        ordered = self.ordered_by(before)
        implied = bool(compared) and all(
            v in ordered and self.analysis.kinds[v] == CONSECUTIVE for v in compared
        )
        if implied and not chunks and not self.choices:
            self.kernel.is_flat = knows_flat_threads(self.kernel)
        return (
            "EMULATOR_ROWS { EMULATOR_ROW; (void)emulator_row; "
            + self.active(before, [] if implied else compared)
            + self.chosen()
            + self.ordered(before, ordered)
            + (self.alike_if_ordered(ordered) if implied else self.alike(compared))
            + self.body(before + own, steady, body, chunks)
            + "::emulator::run_row<%s, %s>(emulator_width, emulator_is_active, "
            "emulator_is_ordered, emulator_alike, emulator_body); }"
            % ("true" if chunks else "false", "true" if self.is_falling() else "false")
        )

    def active(self, before, compared):
        """A lambda: whether a thread runs the body, and the integers to compare."""
        parts = []
        if self.kernel.leaves_early:
            parts.append("if (emulator_left[emulator_row + emulator_x]) return false; ")
        parts.append(self.declarations(before))
        for guard in self.guards:
            if isinstance(guard, tuple):
                wanted = "!" if guard[1] else ""
                parts.append("if (%s(%s)) return false; " % (wanted, self.code(*guard[0])))
            else:
                parts.append(self.kernel.declaration(guard))
        if not compared:
            return (
                "const auto emulator_is_active = [&](unsigned emulator_x) EMULATOR_INLINE -> bool "
                "{ EMULATOR_THREAD(emulator_x); %sreturn true; }; " % "".join(parts)
            )
        found = "".join(
            "emulator_to[%d] = static_cast<long long>(%s); " % (i, v.name)
            for i, v in enumerate(compared)
        )
        found += "".join(
            "emulator_to[%d] = static_cast<long long>(%s); " % (i, self.code(*part))
            for i, part in enumerate(self.numerators(compared), len(compared))
        )
        return (
            "const auto emulator_active = [&](unsigned emulator_x, long long* emulator_to) "
            "EMULATOR_INLINE -> bool { EMULATOR_THREAD(emulator_x); %s"
            "if (emulator_to != nullptr) { %s } return true; }; "
            "const auto emulator_is_active = [&](unsigned emulator_x) EMULATOR_INLINE -> bool "
            "{ return emulator_active(emulator_x, nullptr); }; " % ("".join(parts), found)
        )

    def numerators(self, compared):
        """What must grow by 1 for the quotients among variables to be what their ends are."""
        return [
            part
            for variable in compared
            if self.analysis.kinds[variable] == ALIKE
            for part in self.kernel.numerators[variable]
        ]

    def alike(self, compared):
        """A lambda: whether the integers of threads x .. x + n - 1 grow as they should."""
        checks = "".join(
            " && emulator_last[%d] - emulator_first[%d] == %s"
            % (i, i, "emulator_n - 1ll" if self.analysis.kinds[v] == CONSECUTIVE else "0")
            for i, v in enumerate(compared)
        )
        count = len(compared) + len(self.numerators(compared))
        for i in range(len(compared), count):
            checks += " && emulator_last[%d] - emulator_first[%d] == emulator_n - 1ll" % (i, i)
        for i in self.ahead:
            array, index = self.analysis.owner[i], self.analysis.owner[i + 2]
            checks += " && ::emulator::is_readable(&%s[emulator_first[%d]], emulator_n)" % (
                array.name, compared.index(index))  # fmt: skip
        if self.choices:
            checks += " && emulator_all_chosen(emulator_x, emulator_n)"
        if not compared and not self.choices:
            return (
                "const auto emulator_alike = [](unsigned, unsigned) EMULATOR_INLINE -> bool "
                "{ return true; }; "
            )
        ends = (
            "long long emulator_first[%d], emulator_last[%d]; "
            "return emulator_active(emulator_x, emulator_first) && "
            "emulator_active(emulator_x + emulator_n - 1, emulator_last)" % (count, count)
        )
        if not compared:
            ends = (
                "return emulator_is_active(emulator_x) && "
                "emulator_is_active(emulator_x + emulator_n - 1)"
            )
        return (
            "const auto emulator_alike = [&](unsigned emulator_x, unsigned emulator_n) "
            "EMULATOR_INLINE -> bool { %s%s; }; " % (ends, checks)
        )

    def chosen(self):
        """A lambda: whether all threads x .. x + n - 1 take the first branch of each if."""
        if not self.choices:
            return ""
        conditions = [choice.condition for choice in self.choices]
        bounded = [part for c in conditions for part in self.analysis.bounded(c)]
        needed = {v for condition in conditions for v in self.needed(*condition)}
        values = "".join(
            "emulator_to[%d] = static_cast<long long>(%s); " % (i, self.code(*part))
            for i, part in enumerate(bounded)
        )
        # No integer that grows by 1, from 0 or more, gets by a limit that the last one respects.
        checks = "".join(
            " && emulator_from[{0}] >= 0 && emulator_to[{0}] - emulator_from[{0}] == emulator_n - "
            "1ll".format(i)
            for i in range(len(bounded))
        )
        return (
            "const auto emulator_is_chosen = [&](unsigned emulator_x, long long* emulator_to) "
            "EMULATOR_INLINE -> bool { EMULATOR_THREAD(emulator_x); (void)emulator_to; %s"
            "if (!(%s)) return false; %sreturn true; }; "
            "const auto emulator_all_chosen = [&](unsigned emulator_x, unsigned emulator_n) "
            "EMULATOR_INLINE -> bool { long long emulator_from[%d], emulator_to[%d]; "
            "return emulator_is_chosen(emulator_x, emulator_from) && "
            "emulator_is_chosen(emulator_x + emulator_n - 1, emulator_to)%s; }; "
            % (
                self.declarations(sorted(needed, key=lambda v: v.initial[0])),
                " && ".join("(%s)" % self.code(*condition) for condition in conditions),
                values,
                len(bounded) or 1,
                len(bounded) or 1,
                checks,
            )
        )

    def alike_if_ordered(self, ordered):
        """The same, where all of them are consecutive in a row that is ordered."""
        checks = "".join(
            " && ::emulator::is_readable(&%s[emulator_of(emulator_x).at[%d]], emulator_n)"
            % (self.analysis.owner[i].name, ordered.index(self.analysis.owner[i + 2]))
            for i in self.ahead
        )
        if self.choices:
            checks += " && emulator_all_chosen(emulator_x, emulator_n)"
        return (
            "const auto emulator_alike = [&](unsigned emulator_x, unsigned emulator_n) "
            "EMULATOR_INLINE -> bool { (void)emulator_x; (void)emulator_n; "
            "return emulator_is_ordered%s; }; " % checks
        )

    def ordered_by(self, before):
        """The integers of the conditions, if the threads that meet these come first in a row."""
        conditions = [guard[0] for guard in self.guards if isinstance(guard, tuple)]
        named = {v for part in conditions for v in self.analysis.names(*part)}
        own = [g for g in self.guards if not isinstance(g, tuple)]
        found = [v for v in before + own if v in named and self.analysis.kinds[v] != FIXED]
        return found if self.is_falling() else []

    def ordered(self, before, compared):
        """Whether the integers of the conditions are consecutive in the row, and none is below 0:
        beside an unsigned one it would be the greatest."""
        if not compared:
            return "const bool emulator_is_ordered = true; "
        own = [g for g in self.guards if not isinstance(g, tuple)]
        values = ", ".join("static_cast<long long>(%s)" % v.name for v in compared)
        needed = [v for v in before + own if v in compared or v in self.needed_by(compared)]
        checks = " && ".join(
            "emulator_first.at[{0}] >= 0 && "
            "emulator_last.at[{0}] - emulator_first.at[{0}] == emulator_width - 1ll".format(i)
            for i in range(len(compared))
        )
        return (
            "struct emulator_values { long long at[%d]; }; "
            "const auto emulator_of = [&](unsigned emulator_x) EMULATOR_INLINE { "
            "EMULATOR_THREAD(emulator_x); %s return emulator_values{{%s}}; }; "
            "const emulator_values emulator_first = emulator_of(0), "
            "emulator_last = emulator_of(emulator_width - 1); "
            "const bool emulator_is_ordered = %s; "
            % (len(compared), self.declarations(needed), values, checks)
        )

    def needed_by(self, variables):
        return {n for v in variables for n in self.needed(*v.initial)}

    def body(self, plain, steady, body, chunks):
        """A lambda: the body for threads x .. x + n - 1, n being an integer or Threads<n>."""
        text = "const auto emulator_body = [&](unsigned emulator_x, auto emulator_count) "
        text += "EMULATOR_INLINE { EMULATOR_UNREACHABLE_IF(emulator_x >= emulator_most); "
        if not chunks:
            text += "const int emulator_n = emulator_count; "
            return text + self.first_thread(plain, steady) + self.whole_row(body) + " }; "
        text += "constexpr int emulator_n = decltype(emulator_count)::value; "
        text += self.first_thread(plain, steady)
        text += self.moves(body, False)
        for kind, piece in self.pieces(body):
            if kind == "lanes":
                lanes = self.lanes(piece, '_Pragma("omp simd") ')
                text += self.arrays(piece) + self.kernel.constant(self.counters(piece), lanes)
            elif kind == "plain":
                text += self.inner_plain(piece)
            elif kind == "open":
                head = "{" if piece.kind == "block" else self.head(piece)
                text += head + " "
            else:
                text += "} "
        return text + self.moves(body, True) + " }; "

    def first_thread(self, plain, steady):
        """Declarations for the first thread; the others' integers are counted from its own."""
        self.steady = list(steady)
        return "EMULATOR_THREAD(emulator_x); %s%s" % (
            self.declarations(plain),
            "".join(
                "const auto emulator_first_%s = %s; " % (v.name, v.name)
                for v in self.compared
                if self.analysis.kinds[v] == CONSECUTIVE
            ),
        )

    def whole_row(self, body):
        """The statements for a row, values read ahead; or, as they are, for a single thread.

        Of an if that all threads of the row enter, only what they do there.
        """
        as_they_are = self.lanes(body, "")
        if not self.ahead and not self.choices:
            return as_they_are
        self.is_chosen = True
        tokens, loads = self.kernel.tokens.all, ""
        for i in self.ahead:
            loads += "const auto emulator_ahead_%d = %s; " % (i, self.code(i, i + 3))
            self.edits.append(Edit(tokens[i].start, tokens[i + 3].end, "emulator_ahead_%d" % i))
        self.loads = loads
        return (
            "if constexpr (::std::is_same<decltype(emulator_count), int>::value) { %s} else { %s}"
            % (self.lanes(body, ""), as_they_are)
        )

    def counters(self, statements):
        """The variables of loops that a chunk takes together, as far as statements name them."""
        names = self.analysis.names(*self.span(statements))
        return sorted(
            {v for group in self.loops.values() for v in group} & names, key=lambda v: v.name
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
                text += (
                    "const {0} {1} = static_cast<{0}>(emulator_first_{1} + "
                    "static_cast<{0}>(emulator_l)); "
                ).format(variable.type, variable.name)
            else:
                text += self.kernel.declaration(variable)
        text += self.with_kept(statements, self.loads + self.text_of(statements))
        thread = "EMULATOR_THREAD(emulator_x + emulator_l); "
        return "%sEMULATOR_LANES { %s%s } " % (pragma, thread, text)
