"""Writes the version of a kernel that runs a whole block: loops over threads, cut at barriers.

A kernel without a barrier is one loop over the block's threads. Else each parallel region,
which is what stands between two barriers, is one; loops and ifs around a barrier, which must be
uniform, stand around these loops. What a thread keeps across a barrier becomes an array with an
element a thread. In the same way a region is cut at its uniform loops, so that some neighbouring
threads take each turn of such a loop together (see vector_groups.py).
"""

from block_loops.block_variables import BlockVariables, Refusal
from block_loops.thread_loops import Region
from block_loops.vector_groups import has_return, is_return, leaves_loop
from cuda_source.functions import BARRIER, is_built_in


class Kernel(BlockVariables):
    """Writes the second version of one kernel."""

    def write(self):
        """The body as text."""
        self.has_barrier = self.analysis.has_barrier(self.function.block)
        body = self.function.block.body
        self.collect(body, False)
        self.find_uniform()
        if self.has_barrier:
            self.check_uniform()
        self.find_recomputable()
        self.find_regions(body)
        if self.has_barrier:
            self.check_flow(body, [])
        self.classify()
        left = "bool* const emulator_left = ::emulator::take_flags(emulator_block); "
        text = self.sequence(body)
        return "%s; %s%s return {};" % (
            "EMULATOR_FLAT_BLOCK" if self.is_flat else "EMULATOR_BLOCK",
            left if self.leaves_early else "",
            self.with_claims(text),
        )

    # What the compiler is made to confirm

    def with_claims(self, text):
        """Text in which parameters that keep their values are constants, and what it believes."""
        kept = [p for p in self.function.parameters if self.analysis.is_fixed(p)]
        claims = "".join(claim + " " for claim in self.analysis.claims)
        return self.constant(kept, claims + text)

    def constant(self, variables, text):
        """Text in which variables are constants, so that it cannot change them."""
        if not variables:
            return "{ %s }" % text
        before = "".join(
            "const decltype({0}) emulator_as_{0} = {0}; ".format(v.name) for v in variables
        )
        again = "".join(
            "decltype(emulator_as_{0}) {0} = emulator_as_{0}; (void){0}; {1}".format(
                v.name, self.claim(v)
            )
            for v in variables
        )
        return "{ %s{ %s%s } }" % (before, again, text)

    def claim(self, variable):
        """What is believed of a constant's type."""
        if variable in self.analysis.integers:
            return "EMULATOR_INTEGER(%s) " % variable.name
        is_object = not is_built_in(variable, self.program.number_names(self.function))
        if variable.is_parameter and is_object:
            parts = "".join(self.analysis.object_claims(variable))
            return "EMULATOR_IS_AGGREGATE(%s) %s" % (variable.name, parts)
        return "EMULATOR_NUMBER(%s) " % variable.name

    def stepped(self, statements):
        """The uniform variables that statements name, and that are assigned elsewhere."""
        names = self.analysis.names(statements[0].first, statements[-1].last)
        found = {s.variable for s in self.steps + self.head_steps} & names & self.analysis.uniform
        return sorted(found, key=lambda v: v.name)

    # What is cut

    def splits(self, statement):
        """Whether a barrier stands inside of a statement."""
        return self.has_barrier and self.analysis.has_barrier(statement)

    def is_barrier(self, statement):
        """Whether a statement is a barrier, and nothing else."""
        return (
            statement.kind == "expression"
            and statement.last == statement.first + 3
            and self.text(statement.first) == BARRIER
        )

    def collect(self, statements, in_loop):
        """Finds the statements that are cut, and those beside them."""
        for statement in statements:
            if not self.splits(statement):
                self.check_region(statement, in_loop)
                self.level_statements.append(statement)
                continue
            if statement.kind not in ("block", "if", "for", "while", "do"):
                if not self.is_barrier(statement):
                    raise Refusal("a barrier in an expression")
                continue
            self.levels.add(statement)
            loops = in_loop or statement.kind in ("for", "while", "do")
            for part in self.parts(statement):
                self.collect(part, loops)

    def parts(self, statement):
        """The lists of statements in a cut statement."""
        if statement.kind == "block":
            return [statement.body]
        initial = getattr(statement, "initial", None)
        return [self.listed(child) for child in statement.children() if child is not initial]

    def listed(self, statement):
        """A block's statements, or the one statement in its place."""
        return statement.body if statement.kind == "block" else [statement]

    def check_region(self, statement, in_loop):
        """Refuses what cannot stand in a kernel that is cut at barriers."""
        if not self.has_barrier:
            return
        if any(inner.kind == "other" for inner in statement.walk()):
            raise Refusal("a statement that is not understood")
        if in_loop and leaves_loop(statement):
            raise Refusal("break or continue in a loop with a barrier")

    def into_regions(self, statements):
        """A list of statements as regions, and statements that run once for the whole block."""
        region = []
        for statement in statements:
            if not self.runs_once(statement):
                region.append(statement)
                continue
            if region:
                yield region
            region = []
            yield statement
        if region:
            yield region

    def find_regions(self, statements):
        """Collects all regions of a list of statements."""
        for piece in self.into_regions(statements):
            if isinstance(piece, list):
                self.regions.append(piece)
            elif piece in self.levels:
                for part in self.parts(piece):
                    self.find_regions(part)

    def check_flow(self, statements, before):
        """Refuses to cut where a barrier is missing, since cutting would do what it should.

        `before` has the regions that come before without a barrier; returned are those at the end.
        """
        for piece in self.into_regions(statements):
            if isinstance(piece, list):
                if any(self.analysis.conflict(other, piece) for other in before):
                    raise Refusal("threads may use what others write without a barrier between")
                before = before + [piece]
            elif self.is_barrier(piece):
                before = []
            elif piece in self.levels:
                ends = [self.check_flow(part, before) for part in self.parts(piece)]
                if piece.kind in ("for", "while", "do"):  # the next turn
                    self.check_flow(self.parts(piece)[0], ends[0])
                after = [region for end in ends for region in end]
                is_sure = piece.kind == "block" or (piece.kind == "if" and piece.otherwise)
                before = after if is_sure else before + after
        return before

    def is_final(self, region):
        """Whether nothing follows a region."""
        return not self.has_barrier or region[-1] is self.function.block.body[-1]

    # Text

    def sequence(self, statements):
        """The text of a list of statements at a cut level."""
        return " ".join(
            self.storage(piece)
            + self.constant(self.stepped(piece), Region(self, piece).write())
            + self.leave(piece)
            if isinstance(piece, list)
            else self.run_once(piece)
            for piece in self.into_regions(statements)
        )

    def leave(self, region):
        """Leaves where a region leaves no thread: what follows might not end, or divide by 0."""
        if self.is_final(region) or not any(has_return(statement) for statement in region):
            return ""
        return " if (::emulator::are_all_set(emulator_left, emulator_block)) return {};"

    def runs_once(self, statement):
        """Whether a statement runs once for the whole block."""
        if not self.has_barrier:
            return False
        if statement.kind == "declaration":
            uniform = all(v in self.analysis.uniform for v in statement.variables)
            return statement.variables[0].is_shared or uniform
        step = self.step_of(statement)
        if statement.kind == "empty" or (step and step.variable in self.analysis.uniform):
            return True
        return self.leaves_whole(statement) or self.splits(statement)

    def leaves_whole(self, statement):
        """Whether a statement is `if (c) return;` that all threads of a block do alike."""
        return (
            statement.kind == "if" and is_return(statement.then) and statement.otherwise is None
            and self.analysis.is_uniform(statement.condition)
        )  # fmt: skip

    def run_once(self, statement):
        """The text of a statement that runs once for the whole block."""
        if statement.kind == "declaration" and not statement.variables[0].is_shared:
            return "".join(self.declaration(v) for v in statement.variables)
        if self.leaves_whole(statement):
            return "if (%s) return {};" % self.code(*statement.condition)
        if self.is_barrier(statement):
            return ";"
        if self.splits(statement):
            return self.around(statement)
        return self.code(statement.first, statement.last)

    def around(self, statement):
        """The text of a loop, an if or a block with a barrier in it."""
        kind = statement.kind
        inner = [self.sequence(part) for part in self.parts(statement)]
        if kind == "block":
            return "{ %s }" % inner[0]
        if kind == "if":
            text = "if (%s) { %s }" % (self.code(*statement.condition), inner[0])
            return text + (" else { %s }" % inner[1] if statement.otherwise else "")
        if kind == "do":
            return "do { %s } while (%s);" % (inner[0], self.code(*statement.condition))
        head = self.code(statement.first, statement.inner.first - 1)
        return "%s { %s }" % (head, inner[0])

    def declaration(self, variable):
        """A declaration of one variable; constant, if that is what it is believed to be."""
        analysis, words = self.analysis, variable.specifiers
        may_recompute = variable in analysis.recomputable or variable in analysis.uniform
        is_constant = may_recompute and not analysis.changes[variable]
        is_said = {"const", "constexpr"} & set(words) and not variable.stars
        const = "const " if is_constant and not is_said else ""
        text = "%s %s %s%s" % (" ".join(words), variable.stars, const, variable.name)
        text += self.dimensions(variable)
        if variable.initial is not None:
            value = self.code(*variable.initial)
            text += {"=": " = %s", "(": "(%s)", "{": "{%s}"}[variable.style] % value
        return text + "; " + (self.claim(variable) if is_constant else "")
