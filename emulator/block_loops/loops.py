"""Gives kernels a second version that runs a whole block as loops, see include/emulator/loops.h.

The second version is an overload beside the first one, on lines that say the same numbers and
count as a system header's, so that no warning comes twice. What it rests on is said in it so that
the compiler can refuse it (emulator/claims.h); emucc.py then leaves it out. Kernels of which
anything is not understood have none: their threads run one after another, on fibers where they
wait.
"""

import bisect

from block_loops.fission import Kernel, Refusal
from cuda_source.kernel_facts import bounds_place, check_of
from cuda_source.kernel_starts import namespaces_of
from cuda_source.tokens import MARKER, Edit, quoted

LOOPS, CUT, FIBERS = "loops", "loops, cut at barriers", "fibers"
# The file that a second version seems to stand in, with the number of its function.
SECOND = "<second version of %d, %s>"
# By a device function's name: that of its second version, the namespace of declarations like the
# first one, and that of these beside all functions of the name in its namespace.
INDEXED, LIKE, ALL = "emulator_second_%s", "emulator_like_%s", "emulator_all_%s"


class Loops:
    """Writes the second versions for a program."""

    def __init__(self, program, edits):
        self.program, self.tokens = program, program.tokens
        self.edits = sorted(edits)
        self.starts = [edit.start for edit in self.edits]

    def run(self):
        """The edits that insert all second versions."""
        found = []
        for group in self.program.functions.values():
            for function in group:
                if function.brace is not None:
                    found += self.second_version(function)
        return found

    def second_version(self, function):
        """The edit for one function, in a list, or none."""
        problem = self.program.problem(function)
        problem = problem or self.program.name_problem(function.name)
        if not function.is_kernel:
            if problem is None and self.program.name_knows_thread(function.name):
                return [self.insert(function, self.device_version(function))]
            return []
        problem = problem or self.program.overloads.problem(self.program, function)
        if problem is None:
            try:
                return [self.insert(function, self.kernel_version(function))]
            except Refusal as refusal:
                problem = str(refusal)
        self.program.said.append((function.name, FIBERS, problem))
        return []

    def insert(self, function, text):
        """The edit that puts a second version before a kernel, which calls it, or behind."""
        place = self.tokens.all[function.first].start
        _, first = self.tokens.place(place)
        if not function.is_kernel:
            place = self.tokens.all[function.end].end
        file, last = self.tokens.place(place)
        name = quoted(SECOND % (self.program.number(function), function.name))
        text = MARKER.sub(lambda marker: "# %s %s 3" % (marker.group(1), name), text)
        before = "\n# %d %s 3\n" % (first, name)
        return Edit(
            place, place, '%sextern "C++" { %s }\n# %d %s\n' % (before, text, last, quoted(file))
        )

    def code(self, first, last, more=(), asks=True):
        """The text of tokens first .. last, edited, with the index handed to who needs it."""
        if first > last:
            return ""
        start, end = self.tokens.all[first].start, self.tokens.all[last].end
        low, high = bisect.bisect_left(self.starts, start), bisect.bisect_left(self.starts, end)
        edits = [edit for edit in self.edits[low:high] if edit.end <= end]
        for i in self.calls(first, last):
            edits += self.call(i, more, asks)
        more = [edit for edit in more if start <= edit.start and edit.end <= end]
        inside = [e for e in edits if not any(m.start <= e.start < m.end for m in more)]
        parts, position = [], start
        for edit in sorted(inside + more):
            parts += [self.tokens.source[position : edit.start], edit.text]
            position = edit.end
        return "".join(parts) + self.tokens.source[position:end]

    def calls(self, first, last):
        """Where the names of device functions stand that get the thread's index handed."""
        for i in range(first, last):
            name = self.tokens.text(i)
            if name in self.program.functions and self.tokens.text(i - 1) not in (".", "->"):
                behind = self.behind_name(i)
                if self.tokens.text(behind) == "(" and self.program.name_knows_thread(name):
                    yield i

    def call(self, i, more, asks):
        """The edits that call a device function's second version.

        The compiler is asked whether it chooses one that has a second version: then one more like
        it, among LIKE, makes the call of the first version ambiguous.
        """
        name, behind = self.tokens.all[i], self.behind_name(i)
        close, index = self.tokens.match_forward(behind), "emulator_index"
        arguments = self.code(behind + 1, close - 1, more, asks=False)
        if asks:
            first = i
            while self.tokens.text(first - 1) == "::":
                first -= 1 + (self.tokens.all[first - 2].kind == "word")
            way = self.code(first, i - 1) + (ALL % name.text + "::") * (first < i)
            given = ", ".join([*[arguments] * (close > behind + 1), "emulator_none..."])
            called = way + name.text + self.code(i + 1, behind - 1, more)
            text = "::emulator::handed([](auto... emulator_none) -> decltype(void(%s(%s))) {}, %s)"
            index = text % (called, given, index)
        at = self.tokens.all[behind].end
        comma = ", " if close > behind + 1 else ""
        return [Edit(name.start, name.end, INDEXED % name.text), Edit(at, at, index + comma)]

    def behind_name(self, i):
        """The index behind a name and what stands in < > behind it."""
        if self.tokens.text(i + 1) != "<":
            return i + 1
        depth, k = 0, i + 1
        while self.tokens.text(k) not in ("", ";", "{"):
            depth += (self.tokens.text(k) == "<") - (self.tokens.text(k) == ">")
            if depth == 0:
                return k + 1
            k += 1
        return i + 1

    def head(self, function, name, first_parameter):
        """The head of a function up to its {, with another name and a parameter more."""
        words = [w for w in self.pieces(function) if w not in ('"C"', "extern")]
        parameters = self.code(function.open + 1, function.close - 1)
        comma = ", " if parameters.strip() and first_parameter else ""
        if parameters.strip() == "void":
            parameters = comma = ""
        return "%s %s(%s%s%s)" % (
            " ".join(words), name, first_parameter, comma, parameters)  # fmt: skip

    def pieces(self, function):
        """The words before a function's name, but for its bounds."""
        bounds = bounds_place(function)
        return [
            self.tokens.text(i) for i in range(function.first, function.name_index)
            if i not in bounds
        ]  # fmt: skip

    def device_version(self, function):
        """A device function once more, which gets the index of its thread."""
        name, way = function.name, namespaces_of(function)
        head = self.head(function, INDEXED % name, "const ::emulator::Index emulator_index")
        text = "%s { EMULATOR_INDEX; %s%s" % (
            head, self.uses(function), self.code(function.brace + 1, function.end))  # fmt: skip
        text += " namespace %s { %s; }" % (LIKE % name, self.head(function, name, ""))
        if way != "::":
            text += " namespace %s { using namespace %s; using namespace %s; }" % (
                ALL % name, LIKE % name, way[:-2])  # fmt: skip
        return text

    def uses(self, function):
        """What makes calls in a function ambiguous, see `call`."""
        names = {self.tokens.text(i) for i in self.calls(function.brace, function.end)}
        ways = {name: namespaces_of(self.program.functions[name][0]) for name in names}
        return "".join("using namespace %s%s; " % (ways[n], LIKE % n) for n in sorted(names))

    def kernel_version(self, function):
        """A kernel once more, which runs all threads of a block."""
        kernel = Kernel(self.program, function, self.code)
        body = check_of(function, " {}") + self.uses(function) + kernel.write()
        first = "::emulator::KernelOf<%d> emulator_number_%d, "
        first += "const ::emulator::BlockIndex& emulator_block"
        number = self.program.number(function)
        head = self.head(function, function.name, first % (number, number))
        self.program.believed[number] = kernel.analysis.unpinned()
        # The last void is what the kernel returns.
        before, void, after = head.partition(function.name + "(")[0].rpartition("void")
        if not void:
            raise Refusal("its declaration")
        kind = "::emulator::Looped<%s>" % ", ".join(kernel.types())
        if kernel.is_flat:
            kind = "::emulator::Flat"
        said = CUT if kernel.has_barrier else LOOPS
        how = "in chunks" if kernel.has_chunks else "blocks side by side" if kernel.is_flat else ""
        self.program.said.append((function.name, said, how))
        return "%s%s%s%s { %s }" % (
            before, kind, after, head[len(before + void + after) :], body)  # fmt: skip


def add_loops(program, edits):
    """The edits for a program, given those of the other passes."""
    return Loops(program, edits).run()
