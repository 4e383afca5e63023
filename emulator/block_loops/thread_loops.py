"""Writes the loops over threads for a parallel region: statements without a barrier.

    thread by thread     for y, for x: the statements
    rows                 the conditions that the statements stand under are checked for all
                         threads of a row first, so that what remains has none
    chunks               neighbouring threads take each turn of a uniform loop together: their
                         sums are independent, so that a CPU adds several at once

Each thread does the same operations in the same order in all three.
"""

from block_loops.flat_kernels import knows_flat_threads
from block_loops.row_checks import RowChecks
from block_loops.strides import ALIKE, CONSECUTIVE, INVARIANT
from block_loops.vector_groups import declared_within, has_return
from cuda_source.tokens import Edit


class Region(RowChecks):
    """Writes one region of a kernel."""

    def write(self):
        """The region as text."""
        body = self.peel(self.statements)
        if self.may_go_together(body):
            self.find_loops(body)
            if (self.loops or self.strided_loops) and self.keep(body):
                self.kernel.has_chunks = self.is_cut = True
                return self.rows(body, True)
            self.find_choices(body)
            if all(
                s.kind in ("expression", "declaration", "empty") or s in self.choices for s in body
            ):
                return self.rows(body, False)
        return self.one_by_one()

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
            "EMULATOR_ROWS { EMULATOR_ROW; "
            "for (unsigned emulator_x = 0; emulator_x < emulator_width; ++emulator_x) { %s"
            "EMULATOR_THREAD(emulator_x); %s } }" % (left if self.kernel.leaves_early else "", text)
        )

    def rows(self, body, chunks):
        """The body for a row of threads at a time, or for chunks of it."""
        own = [g for g in self.guards if not isinstance(g, tuple)]
        before = self.needed(*self.span(self.statements), but=own + declared_within(body))
        varying = [v for v in before + own if self.analysis.strides[v] != INVARIANT]
        used = self.needed(*self.span(body))
        compared = self.compared = [
            v for v in varying if v in used and self.analysis.strides[v] in (ALIKE, CONSECUTIVE)
        ]
        if not chunks:
            self.find_ahead(body)
        conditions = self.guards or self.choices or self.ahead or self.kernel.leaves_early
        if not chunks and not compared and not conditions:
            return (
                "EMULATOR_ROWS { EMULATOR_ROW; "
                "const unsigned emulator_x = 0; const int emulator_n = emulator_width; %s%s} "
                % (self.first_thread(before, varying), self.whole_row(body))
            )
        recomputable, ordered = before + own, self.ordered_by(before)
        implied = bool(compared) and all(
            v in ordered and self.analysis.strides[v] == CONSECUTIVE for v in compared
        )
        if implied and not chunks and not self.choices:
            self.kernel.is_flat = knows_flat_threads(self.kernel)
        return (
            "EMULATOR_ROWS { EMULATOR_ROW; "
            + self.active(before)
            + self.chosen()
            + self.ordered(recomputable, ordered)
            + ("" if implied else self.compared_integers(recomputable, compared))
            + self.together(compared, ordered if implied else [])
            + self.body(recomputable, varying, body, chunks)
            + "::emulator::run_row<%s, %s>(emulator_width, emulator_is_active, "
            "emulator_is_ordered, emulator_together, emulator_body); }"
            % ("true" if chunks else "false", "true" if self.is_falling() else "false")
        )

    def body(self, recomputable, varying, body, chunks):
        """A lambda: the body for threads x .. x + n - 1, n being an integer or Threads<n>."""
        text = "const auto emulator_body = [&](unsigned emulator_x, auto emulator_count) "
        text += "EMULATOR_INLINE { const int emulator_n = emulator_count; "
        text += self.first_thread(recomputable, varying)
        if not chunks:
            return text + self.whole_row(body) + " }; "
        text += self.moves(body, False)
        for kind, piece in self.pieces(body):
            if kind == "together":
                loop = self.side_by_side(piece, '_Pragma("omp simd") ')
                text += self.arrays(piece) + self.kernel.constant(self.counters(piece), loop)
            elif kind == "strided":
                loop = self.strided(piece)
                text += self.kernel.constant(self.counters([piece]), loop)
            elif kind == "recomputed":
                text += self.recomputed(piece)
            elif kind == "open":
                head = "{" if piece.kind == "block" else self.head(piece)
                text += head + " "
            else:
                text += "} "
        return text + self.moves(body, True) + " }; "

    def first_thread(self, recomputable, varying):
        """Declarations for the first thread; the others' integers are counted from its own."""
        self.varying = list(varying)
        return "EMULATOR_THREAD(emulator_x); %s%s" % (
            self.declarations(recomputable),
            "".join(
                "const auto emulator_first_%s = %s; " % (v.name, v.name)
                for v in self.compared
                if self.analysis.strides[v] == CONSECUTIVE
            ),
        )

    def whole_row(self, body):
        """The statements for a row, values read ahead; or, as they are, for a single thread.

        Of an if that all threads of the row enter, only what they do there.
        """
        as_they_are = self.side_by_side(body, "")
        if not self.ahead and not self.choices:
            return as_they_are
        self.is_chosen = True
        tokens, loads = self.kernel.tokens.all, ""
        for i in self.ahead:
            loads += "const auto emulator_ahead_%d = %s; " % (i, self.code(i, i + 3))
            self.edits.append(Edit(tokens[i].start, tokens[i + 3].end, "emulator_ahead_%d" % i))
        self.loads = loads
        return "if constexpr (::emulator::is_row<decltype(emulator_count)>) { %s} else { %s}" % (
            self.side_by_side(body, ""),
            as_they_are,
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

    def recomputed(self, statement):
        """A declaration in the body: here for the first thread, again for each that differs."""
        if statement.kind == "empty":
            return ""
        text = ""
        for variable in statement.variables:
            text += self.kernel.declaration(variable)
            if self.analysis.strides[variable] != INVARIANT:
                self.varying.append(variable)
        return text

    def side_by_side(self, statements, pragma):
        """Statements for each thread of a chunk."""
        text = self.varying_ones(statements)
        text += self.with_kept(statements, self.loads + self.text_of(statements))
        thread = "EMULATOR_THREAD(emulator_x + emulator_t); "
        return "%sEMULATOR_SIDE_BY_SIDE { %s%s } " % (pragma, thread, text)

    def varying_ones(self, statements):
        """Declarations of what statements need, and what a thread has of its own."""
        needed = self.needed(*self.span(statements))
        text = ""
        for variable in self.varying:
            stride = self.analysis.strides[variable]
            if variable not in needed or (stride == ALIKE and variable in self.compared):
                continue
            if stride == CONSECUTIVE and variable in self.compared:
                text += "const auto %s = ::emulator::further(emulator_first_%s, emulator_t); " % (
                    variable.name, variable.name)  # fmt: skip
            else:
                text += self.kernel.declaration(variable)
        return text
