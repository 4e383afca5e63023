"""Loops in which a thread takes every n-th element: `for (int j = threadIdx.x; j < n; j += step)`.

Their counter grows by 1 from thread to thread. So a chunk of threads takes the turns that all of
them take together, each its own element of a row of neighbours. What is left at the end, each takes
alone: the same operations in the same order.
"""

from block_loops.strides import CONSECUTIVE

STRAIGHT = ("expression", "declaration", "empty")


class StridedLoops:
    """Part of VectorGroups, which knows the kernel, and of Region, which writes text."""

    def is_strided(self, statement):
        """Whether a loop is of that kind, its statements stand one after another, and it is what
        alone changes its counter."""
        if statement.kind != "for":
            return False
        variables = getattr(statement.initial, "variables", [])
        return (
            len(variables) == 1
            and self.is_counter(variables[0], statement)
            and self.is_limit(statement.condition, variables[0])
            and self.is_stride(statement, variables[0])
            and all(self.is_straight(inner) for inner in self.kernel.listed(statement.inner))
        )

    def is_counter(self, variable, statement):
        """Whether a counter begins with what is consecutive, and changes at the loop's step."""
        analysis, (first, last) = self.analysis, statement.step
        return (
            variable.initial is not None
            and variable.dimensions is None
            and not variable.is_reference
            and not variable.is_shadowed
            and variable not in analysis.pinned
            and self.kernel.program.is_integer(variable)
            and all(first <= i <= last for i in analysis.changes[variable])
            and analysis.is_recomputable(variable.initial)
            and analysis.stride(variable.initial) == CONSECUTIVE
        )

    def is_limit(self, condition, variable):
        """Whether a condition is `j < n`."""
        if condition is None or condition[0] > condition[1]:
            return False
        left = self.analysis.left_side(condition, ("<", "<="))
        is_own = left is not None and left[0] == left[1] == condition[0]
        is_own = is_own and self.analysis.owner.get(condition[0]) is variable
        return is_own and self.is_invariant(condition, [variable])

    def is_stride(self, statement, variable):
        """Whether a loop's step is `j += n`."""
        steps = self.kernel.steps_of_head(statement)
        if not steps or len(steps) != 1 or steps[0].variable is not variable:
            return False
        signs = [self.kernel.text(steps[0].first + k) for k in (1, 2)]
        value = steps[0].value
        return signs == ["+", "="] and self.is_invariant(value) and self.analysis.is_integral(value)

    def is_straight(self, statement):
        """Whether a statement of the loop has no choice of ways, and no variable with a place."""
        return statement.kind in STRAIGHT and not any(
            variable in self.analysis.pinned or self.kernel.escapes(variable)
            for variable in getattr(statement, "variables", ())
        )

    # Text

    def strided(self, statement):
        """The loop for the threads of a chunk."""
        variable, inner = statement.initial.variables[0], self.kernel.listed(statement.inner)
        begun = self.kernel.declaration(variable)
        head = "for (; %s; %s) { " % (
            self.kernel.code(*statement.condition), self.kernel.code(*statement.step))  # fmt: skip
        alone = begun + "if (emulator_goes) %s = ::emulator::further(emulator_first_%s, " % (
            (variable.name,) * 2)  # fmt: skip
        alone += "emulator_t); "
        words = {
            "name": variable.name,
            "needed": self.declarations(self.needed(*variable.initial)),
            "begun": begun,
            "meets": self.kernel.code(*statement.condition),
            "step": self.kernel.code(*statement.step),
            "turn": self.turn(inner, variable),
            "alone": self.for_each_thread([statement], alone + head + self.text_of(inner) + "}"),
        }
        return (
            "{ %(begun)sbool emulator_goes = false; if (emulator_n > 1) { "
            "const auto emulator_first_%(name)s = %(name)s; "
            "EMULATOR_THREAD(emulator_x + emulator_n - 1); %(needed)s%(begun)s"
            "emulator_goes = ::emulator::follows(emulator_first_%(name)s, %(name)s, emulator_n); } "
            "if (emulator_goes) for (;; %(step)s) { "
            "if (!::emulator::holds(%(name)s, emulator_n) || !(%(meets)s)) break; "
            "const auto emulator_first_%(name)s = %(name)s; "
            "{ const auto %(name)s = ::emulator::further(emulator_first_%(name)s, emulator_n - 1); "
            "if (!(%(meets)s)) break; } %(turn)s } "
            "const auto emulator_first_%(name)s = %(name)s; %(alone)s } "
        ) % words

    def turn(self, statements, variable):
        """What all threads of a chunk do in one turn."""
        if not statements:
            return ""
        counter = "const auto %s = ::emulator::further(emulator_first_%s, emulator_t); "
        counter = counter % (variable.name, variable.name)
        text = counter + "EMULATOR_INTEGER(%s) " % variable.name
        return '_Pragma("omp simd") ' + self.for_each_thread(statements, "", text)

    def for_each_thread(self, statements, text, counter=""):
        """Statements, or text in their place, for each thread of a chunk."""
        before = self.varying_ones(statements) + counter
        inner = self.with_kept(statements, text or self.text_of(statements))
        thread = "EMULATOR_THREAD(emulator_x + emulator_t); "
        return "EMULATOR_SIDE_BY_SIDE { %s%s%s } " % (thread, before, inner)
