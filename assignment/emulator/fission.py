"""Writes the version of a kernel that runs a whole block: loops over threads, cut at barriers.

A kernel without a barrier is one loop over the block's threads. Else each stretch between two
barriers is one; loops and ifs around a barrier, which must be uniform, stand around these loops.
What a thread keeps across a barrier becomes an array with an element a thread. In the same way
a stretch is cut at its uniform loops, so that some neighbouring threads take each turn of such a
loop together (see lanes.py).
"""

from analysis import ANY, FIXED, INTEGER, Analysis
from functions import BARRIER
from lanes import has_return, is_return, leaves_loop
from rows import Run
from statements import TYPE_WORDS


class Refusal(Exception):
    """Why a kernel stays on fibers."""


class Kernel:
    """Writes the block version of one kernel; `code` gives the text of a range of tokens."""

    def __init__(self, program, function, code):
        self.function, self.code = function, code
        self.analysis = Analysis(program, function)
        self.program = program
        self.tokens, self.text = function.tokens, function.tokens.text
        self.runs = []  # lists of statements between barriers
        self.stored = []  # variables that live across a barrier
        self.levels = set()  # statements whose parts are cut
        self.level_statements = []  # the others beside them
        self.leaves_early = False
        self.has_lanes = False

    def write(self):
        """The body as text."""
        self.has_barrier = self.analysis.has_barrier(self.function.block)
        body = self.function.block.body
        self.collect(body, False)
        self.find_uniform()
        if self.has_barrier:
            self.check_uniform()
        self.find_plain()
        self.find_runs(body)
        if self.has_barrier:
            self.check_flow(body, [])
        self.classify()
        left = "bool* const emulator_left = ::emulator::take_locals<bool>(emulator_block); "
        left += "::std::memset(emulator_left, 0, blockDim.x * blockDim.y * blockDim.z); "
        text = self.sequence(body)
        return "EMULATOR_BLOCK; %s%s return {};" % (left if self.leaves_early else "", text)

    def types(self):
        """The types of the variables that are copied as bytes."""
        return sorted(
            {v.type for v in self.stored if v.type not in TYPE_WORDS and "*" not in v.stars}
        )

    # What is cut

    def splits(self, statement):
        return self.has_barrier and self.analysis.has_barrier(statement)

    def is_barrier(self, statement):
        return (
            statement.kind == "expression"
            and statement.last == statement.first + 3
            and self.text(statement.first) == BARRIER
        )

    def collect(self, statements, in_loop):
        """Finds the statements that are cut, and those beside them."""
        for statement in statements:
            if not self.splits(statement):
                self.check_run(statement, in_loop)
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

    def check_run(self, statement, in_loop):
        if not self.has_barrier:
            return
        if any(inner.kind == "other" for inner in statement.walk()):
            raise Refusal("a statement that is not understood")
        if in_loop and leaves_loop(statement):
            raise Refusal("break or continue in a loop with a barrier")

    def cut(self, statements):
        """A list of statements as runs, and statements that run once for the whole block."""
        run = []
        for statement in statements:
            text = self.whole(statement)
            if text is None:
                run.append(statement)
                continue
            if run:
                yield run
            run = []
            yield statement
        if run:
            yield run

    def find_runs(self, statements):
        """Collects all runs of a list of statements."""
        for piece in self.cut(statements):
            if isinstance(piece, list):
                self.runs.append(piece)
            elif piece in self.levels:
                for part in self.parts(piece):
                    self.find_runs(part)

    def check_flow(self, statements, before):
        """Refuses to cut where a barrier is missing, since cutting would do what it should.

        `before` has the runs that come before without a barrier; returned are those at the end.
        """
        for piece in self.cut(statements):
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
                after = [run for end in ends for run in end]
                is_sure = piece.kind == "block" or (piece.kind == "if" and piece.otherwise)
                before = after if is_sure else before + after
        return before

    def is_final(self, run):
        """Whether nothing follows a run."""
        return not self.has_barrier or run[-1] is self.function.block.body[-1]

    # What is uniform

    def is_step(self, statement):
        """The variable that a statement at a cut level changes, or None."""
        if statement.kind != "expression":
            return None
        changed = [v for v in self.analysis.variables for i in self.analysis.changes[v]
                   if statement.first <= i <= statement.last]  # fmt: skip
        return changed[0] if len(changed) == 1 else None

    def steps(self):
        """Ranges of the expressions that change a variable for the whole block."""
        found = {}
        for statement in self.level_statements if self.has_barrier else []:
            variable = self.is_step(statement)
            if variable is not None:
                found[statement.first, statement.last - 1] = variable
        for statement in self.levels:
            if statement.kind == "for" and statement.step[0] <= statement.step[1]:
                for variable in self.analysis.variables:
                    if any(statement.step[0] <= i <= statement.step[1]
                           for i in self.analysis.changes[variable]):  # fmt: skip
                        found[statement.step] = variable
        return found

    def declared(self):
        """Variables that are declared at a cut level, or in the head of a cut loop."""
        statements = self.level_statements + [s.initial for s in self.levels if s.kind == "for"]
        return [v for s in statements if s.kind == "declaration" for v in s.variables]

    def find_uniform(self):
        """Finds the uniform variables: all, less those that depend on one that is not."""
        analysis, steps = self.analysis, self.steps()
        candidates = set(self.function.parameters) | set(self.declared())
        analysis.uniform = {v for v in candidates if self.may_be_uniform(v, steps)}
        before = None
        while before != len(analysis.uniform):
            before = len(analysis.uniform)
            for variable in list(analysis.uniform):
                if not self.stays_uniform(variable, steps):
                    analysis.uniform.discard(variable)

    def may_be_uniform(self, variable, steps):
        if variable in self.analysis.pinned or variable.is_reference or variable.is_shared:
            return False
        if (variable.dimensions and not variable.is_parameter) or "volatile" in variable.specifiers:
            return False
        inside = [v for part, v in steps.items() for i in self.analysis.changes[variable]
                  if part[0] <= i <= part[1]]  # fmt: skip
        return len(inside) == len(self.analysis.changes[variable])

    def stays_uniform(self, variable, steps):
        if not variable.is_parameter:
            if variable.initial is None and not self.analysis.changes[variable]:
                return False
            if variable.initial is not None and not self.analysis.is_uniform(variable.initial):
                return False
        return all(self.is_uniform_step(part, v) for part, v in steps.items() if v is variable)

    def is_uniform_step(self, part, variable):
        """Whether `i += n` or its like is uniform."""
        analysis = self.analysis
        changed = set(analysis.changes[variable])
        for i in range(part[0], part[1] + 1):
            if i in changed or (self.text(i) == "=" and not analysis.is_comparison(i)):
                continue
            if not analysis.is_allowed(i, analysis.uniform, False):
                return False
        signs = [i for i in range(*part) if self.text(i) == "=" and not analysis.is_comparison(i)]
        return len(signs) <= 1

    def check_uniform(self):
        for statement in self.levels:
            condition = getattr(statement, "condition", None)
            if condition is None:
                continue
            is_empty = condition[0] > condition[1]
            if not is_empty and not self.analysis.is_uniform(condition):
                raise Refusal("the condition around a barrier may differ among threads")
            if statement.kind == "for":
                self.check_head(statement)
        for parameter in self.function.parameters:
            if parameter not in self.analysis.uniform and self.analysis.changes[parameter]:
                raise Refusal("a parameter is assigned")

    def check_head(self, statement):
        initial, variables = statement.initial, getattr(statement.initial, "variables", [])
        if initial.kind != "empty" and not all(v in self.analysis.uniform for v in variables):
            raise Refusal("a loop around a barrier may differ among threads")
        if initial.kind not in ("empty", "declaration"):
            raise Refusal("a loop around a barrier with a variable from outside")
        changed = [v for v in self.analysis.variables
                   for i in self.analysis.changes[v]
                   if statement.step[0] <= i <= statement.step[1]]  # fmt: skip
        if any(v not in self.analysis.uniform for v in changed):
            raise Refusal("a loop around a barrier may differ among threads")

    # What may be computed again, and what must be kept

    def find_plain(self):
        analysis = self.analysis
        moving = {v for v in analysis.uniform if analysis.changes[v]}
        heads = {
            v for s in self.levels if s.kind == "for" for v in getattr(s.initial, "variables", [])
        }
        stepped = {v for part, v in self.steps().items() if (part not in
                   [s.step for s in self.levels if s.kind == "for"])}  # fmt: skip
        steady = analysis.uniform - (moving - heads) - stepped
        self.steady = steady
        for variable in self.declared():
            if not self.has_barrier or variable not in analysis.uniform:
                self.try_plain(variable)

    def try_plain(self, variable):
        """Notes a variable that may be computed again, and how it changes along x."""
        analysis = self.analysis
        everything, analysis.uniform = analysis.uniform, self.steady
        is_plain = analysis.is_fixed(variable) and analysis.is_plain(variable.initial)
        analysis.uniform = everything
        if not is_plain or {"auto", "volatile"} & set(variable.specifiers) or variable.is_shadowed:
            return
        self.analysis.plain.add(variable)
        kind = self.analysis.kind(variable.initial)
        if kind != FIXED and not INTEGER.fullmatch(variable.type):
            kind = ANY
        self.analysis.kinds[variable] = kind

    def run_of(self, i):
        """Number of the run that a token is in, or None."""
        for number, run in enumerate(self.runs):
            if run[0].first <= i <= run[-1].last:
                return number
        return None

    def classify(self):
        """Finds the variables that live across a barrier."""
        if not self.has_barrier:
            return
        for variable in self.declared():
            if variable in self.analysis.uniform or variable in self.analysis.plain:
                continue
            if variable.is_shared:
                continue
            home = self.home_of(variable)
            if {self.run_of(i) for i in variable.uses} <= {home}:
                continue
            reason = self.storage_problem(variable)
            if reason:
                raise Refusal(reason)
            self.stored.append(variable)
        for run in self.runs:
            if not self.is_final(run) and any(has_return(s) for s in run):
                self.leaves_early = True

    def home_of(self, variable):
        """Number of the run that declares a variable."""
        for number, run in enumerate(self.runs):
            if any(s.kind == "declaration" and variable in s.variables for s in run):
                return number
        return None

    def storage_problem(self, variable):
        return storage_problem(self.program, self.function, variable)

    # Text

    def sequence(self, statements):
        """The text of a list of statements at a cut level."""
        pieces = self.cut(statements)
        return " ".join(
            self.storage(piece) + Run(self, piece).write()
            if isinstance(piece, list)
            else self.whole(piece)
            for piece in pieces
        )

    def storage(self, run):
        """Declares the arrays for what a run declares and others use."""
        found = [v for s in run if s.kind == "declaration" for v in s.variables if v in self.stored]
        return "".join(
            "typedef %s emulator_type_%s%s; emulator_type_%s* __restrict const emulator_all_%s = "
            "::emulator::take_locals<emulator_type_%s>(emulator_block); "
            % (v.type, v.name, self.dimensions(v), v.name, v.name, v.name)
            for v in found
        )

    def dimensions(self, variable):
        return self.code(*variable.dimensions) if variable.dimensions else ""

    def whole(self, statement):
        """The text of a statement that runs once for the whole block, or None."""
        if not self.has_barrier:
            return None
        if statement.kind == "declaration":
            if statement.variables[0].is_shared:
                return self.code(statement.first, statement.last)
            if all(v in self.analysis.uniform for v in statement.variables):
                return "".join(self.declaration(v) for v in statement.variables)
            return None
        if statement.kind == "empty":
            return ""
        variable = self.is_step(statement)
        if variable is not None and variable in self.analysis.uniform:
            return self.code(statement.first, statement.last)
        if statement.kind == "if" and is_return(statement.then) and statement.otherwise is None:
            if self.analysis.is_uniform(statement.condition):
                return "if (%s) return {};" % self.code(*statement.condition)
        if not self.splits(statement):
            return None
        return ";" if self.is_barrier(statement) else self.around(statement)

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
        """A declaration of one variable."""
        text = " ".join(variable.specifiers) + " " + variable.stars + variable.name
        text += self.dimensions(variable)
        if variable.initial is not None:
            value = self.code(*variable.initial)
            text += {"=": " = %s", "(": "(%s)", "{": "{%s}"}[variable.style] % value
        return text + "; "


def storage_problem(program, function, variable):
    """Why there cannot be an array of a variable, or None."""
    words = [word for word in variable.type.replace("*", " ").split() if word != "const"]
    known = TYPE_WORDS | function.template_names()
    structs = {tokens.text(i + 1) for tokens in program.sources.values() for i, token in
               enumerate(tokens.all) if token.text == "struct"}  # fmt: skip
    if "volatile" in variable.specifiers or variable.is_reference or variable.is_shadowed:
        return "`%s` lives across a barrier, or a loop" % variable.name
    if not all(word in known | structs for word in words) or not words:
        return "`%s` lives across a barrier, or a loop" % variable.name
    return None
