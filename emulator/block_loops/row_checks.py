"""Writes what is asked at run time before threads of a row go together.

These are lambdas for emulator::run_row, see include/emulator/rows.h: whether a thread is active,
and whether the threads x .. x + n - 1 may run the body side by side.
"""

from block_loops.stored_variables import StoredVariables
from block_loops.strides import ALIKE, CONSECUTIVE, INVARIANT


class RowChecks(StoredVariables):
    """What is asked of the threads of one region."""

    def of_thread(self, name, text):
        """A lambda that is asked of a thread."""
        head = "const auto emulator_%s = [&](unsigned emulator_x) EMULATOR_INLINE " % name
        return head + "{ EMULATOR_THREAD(emulator_x); %s}; " % text

    def integers(self, name, variables, values, by_one):
        """A lambda: integers of a thread, made of variables; and whether each grows by 1."""
        grows = ", ".join("true" if one else "false" for one in by_one)
        found = "return ::emulator::integers<%s>(%s); " % (grows, ", ".join(values))
        return self.of_thread(name, self.declarations(variables) + found)

    def active(self, before):
        """A lambda: whether a thread runs the body."""
        text = self.declarations(before)
        if self.kernel.leaves_early:
            text = "if (emulator_left[emulator_row + emulator_x]) return false; " + text
        for guard in self.guards:
            if isinstance(guard, tuple):
                (condition, is_wanted) = guard
                sign = "!" if is_wanted else ""
                text += "if (%s(%s)) return false; " % (sign, self.code(*condition))
            else:
                text += self.kernel.declaration(guard)
        return self.of_thread("is_active", text + "return true; ")

    def chosen(self):
        """Lambdas: whether a thread takes the first branch of each if, and what decides that."""
        if not self.choices:
            return ""
        conditions = [choice.condition for choice in self.choices]
        needed = {v for condition in conditions for v in self.needed(*condition)}
        needed = sorted(needed, key=lambda v: v.initial[0])
        all_of_them = " && ".join("(%s)" % self.code(*condition) for condition in conditions)
        text = self.of_thread(
            "is_chosen", "%sreturn %s; " % (self.declarations(needed), all_of_them)
        )
        values = [self.code(*part) for part in self.bounded()]
        if values:
            text += self.integers("bounded", needed, values, [True] * len(values))
        return text

    def bounded(self):
        """The ranges of the integers that the conditions of ifs compare with a limit."""
        return [part for c in self.choices for part in self.analysis.bounded(c.condition)]

    def ordered_by(self, before):
        """The integers of the conditions, if the threads that meet these come first in a row."""
        conditions = [guard[0] for guard in self.guards if isinstance(guard, tuple)]
        named = {v for part in conditions for v in self.analysis.names(*part)}
        own = [g for g in self.guards if not isinstance(g, tuple)]
        found = [v for v in before + own if v in named and self.analysis.strides[v] != INVARIANT]
        return found if self.is_falling() else []

    def ordered(self, recomputable, integers):
        """Whether the integers of the conditions are consecutive in the row, none below 0."""
        if not integers:
            return "const bool emulator_is_ordered = true; "
        needed = {n for v in integers for n in self.needed(*v.initial)}
        needed = [v for v in recomputable if v in integers or v in needed]
        names = [v.name for v in integers]
        text = self.integers("limited", needed, names, [True] * len(names))
        rise = "::emulator::rise(emulator_limited, 0, emulator_width)"
        return text + "const bool emulator_is_ordered = %s; " % rise

    def compared_integers(self, recomputable, compared):
        """A lambda: the integers that must grow as they seem to for threads to go together."""
        parts = [part for v in compared for part in self.numerators(v)]
        if not compared:
            return ""
        by_one = [self.analysis.strides[v] == CONSECUTIVE for v in compared] + [True] * len(parts)
        values = [v.name for v in compared] + [self.code(*part) for part in parts]
        return self.integers("compared", recomputable, values, by_one)

    def numerators(self, variable):
        """What must grow by 1 for the quotients in a variable to be what their ends are."""
        return self.kernel.numerators[variable] if self.analysis.strides[variable] == ALIKE else []

    def together(self, compared, ordered):
        """A lambda: whether threads x .. x + n - 1, of which the ends are active, go together.

        That `ordered` are consecutive in the whole row may say it of all that are compared.
        """
        ends = "::emulator::both_ends(emulator_%s, emulator_x, emulator_n)"
        grow = "::emulator::%s(emulator_%s, emulator_x, emulator_n)"
        said = "limited" if ordered else "compared"
        terms = ["emulator_is_ordered"] if ordered else []
        if not ordered and (compared or self.choices):
            terms.append(ends % "is_active")
        if not ordered and compared:
            terms.append(grow % ("grow", "compared"))
        for i in self.ahead:
            array, index = self.analysis.owner[i], self.analysis.owner[i + 2]
            place = (ordered or compared).index(index)
            terms.append("::emulator::is_readable(&%s[emulator_%s(emulator_x).at[%d]], emulator_n)"
                         % (array.name, said, place))  # fmt: skip
        if self.choices:
            terms.append(ends % "is_chosen")
        if self.choices and self.bounded():
            terms.append(grow % ("rise", "bounded"))
        return (
            "const auto emulator_together = [&](unsigned emulator_x, unsigned emulator_n) "
            "EMULATOR_INLINE { return %s; }; " % (" && ".join(terms) or "true")
        )
