"""Writes what is asked at run time before the threads of a row, or of a chunk, go together."""

from block_loops.stored_variables import StoredVariables
from block_loops.strides import ALIKE, CONSECUTIVE, FIXED


class RowChecks(StoredVariables):
    """The lambdas that emulator::run_row asks."""

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
