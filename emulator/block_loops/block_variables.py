"""What becomes of a kernel's variables when its body is cut at barriers.

One that is uniform is a variable of the whole block. One that is recomputable is computed again
wherever it is needed (rematerialisation). One that lives across a barrier becomes an array with an
element a thread (scalar expansion).
"""

from block_loops.dependences import Analysis
from block_loops.strides import ANY, INVARIANT
from block_loops.vector_groups import has_return
from cuda_source.functions import is_built_in
from cuda_source.statements import TYPE_WORDS


class Refusal(Exception):
    """Why a kernel stays on fibers."""


class BlockVariables:
    """The variables of one kernel; `code` gives the text of a range of tokens."""

    def __init__(self, program, function, code):
        self.function, self.code = function, code
        self.analysis = Analysis(program, function)
        self.program = program
        self.tokens, self.text = function.tokens, function.tokens.text
        self.regions = []  # lists of statements between barriers
        self.stored = []  # variables that live across a barrier
        self.kept = set()  # those that live across a loop
        self.levels = set()  # statements whose parts are cut
        self.steps, self.head_steps = [], []  # assignments for the whole block
        self.level_statements = []  # the others beside them
        self.numerators = {}  # of variables: ranges that must grow by 1 for it to be alike
        self.leaves_early = False
        self.has_chunks = False
        self.is_flat = False  # whether blocks may run side by side as if they were one
        names = program.number_names(function)
        # An object may hold the address of any variable, and its functions may take references.
        self.has_objects = not all(
            is_built_in(v, names) for v in self.analysis.variables if not v.is_shared
        ) or program.takes_unknown(function)
        own = [v for v in self.analysis.variables if not v.is_parameter]
        self.has_locals_of_classes = not all(is_built_in(v, program.aliases.keys()) for v in own)
        # Who knows which variable such an object leads to?
        self.has_holders = self.analysis.has_classes()

    # What is uniform

    def step_of(self, statement):
        """The assignment that a statement at a cut level is, and nothing more; or None."""
        if statement.kind != "expression":
            return None
        found = self.analysis.steps((statement.first, statement.last - 1))
        return found[0] if found is not None and len(found) == 1 else None

    def steps_of_head(self, statement):
        """The assignments in the third part of a loop's head; None if there is anything else."""
        return [] if is_empty(statement.step) else self.analysis.steps(statement.step)

    def find_steps(self):
        """Collects the assignments that are made for the whole block, in heads and elsewhere."""
        statements = self.level_statements if self.has_barrier else []
        self.steps = [step for step in map(self.step_of, statements) if step is not None]
        self.head_steps = []
        for statement in self.levels:
            if statement.kind == "for":
                self.head_steps += self.steps_of_head(statement) or []

    def declared(self):
        """Variables that are declared at a cut level, or in the head of a cut loop."""
        statements = self.level_statements + [s.initial for s in self.levels if s.kind == "for"]
        return [v for s in statements if s.kind == "declaration" for v in s.variables]

    def find_uniform(self):
        """Finds the uniform variables: all, less those that depend on one that is not."""
        analysis = self.analysis
        self.find_steps()
        candidates = [*self.function.parameters, *self.declared()]
        analysis.uniform = {v for v in candidates if self.may_be_uniform(v)}
        before = None
        while before != len(analysis.uniform):
            before = len(analysis.uniform)
            for variable in candidates:  # in their order, so that the text is always the same
                if variable in analysis.uniform and not self.stays_uniform(variable):
                    analysis.uniform.discard(variable)

    def steps_to(self, variable):
        """The changes of a variable at the level of barriers."""
        return [step for step in self.steps + self.head_steps if step.variable is variable]

    def may_be_uniform(self, variable):
        """Whether a variable is of a kind that can have one value for the whole block."""
        analysis = self.analysis
        if variable in analysis.pinned or variable.is_reference or variable.is_shared:
            return False
        if (variable.dimensions and not variable.is_parameter) or "volatile" in variable.specifiers:
            return False
        names = self.program.number_names(self.function)
        if not variable.is_parameter and not is_built_in(variable, names):
            return False
        steps = self.steps_to(variable)
        return all(any(s.first <= i <= s.last for s in steps) for i in analysis.changes[variable])

    def stays_uniform(self, variable):
        """Whether all that a variable gets is the same for all threads of a block."""
        analysis = self.analysis
        if not variable.is_parameter:
            if variable.initial is None and not analysis.changes[variable]:
                return False
            if variable.initial is not None and not analysis.is_uniform(variable.initial):
                return False
        return all(s.value is None or analysis.is_uniform(s.value) for s in self.steps_to(variable))

    def check_uniform(self):
        """Refuses conditions and loops around a barrier that may differ among threads."""
        for statement in self.levels:
            condition = getattr(statement, "condition", None)
            if condition is None:
                continue
            if not is_empty(condition) and not self.analysis.is_uniform(condition):
                raise Refusal("the condition around a barrier may differ among threads")
            if statement.kind == "for":
                self.check_head(statement)
        for parameter in self.function.parameters:
            # Each region would begin with the value that it was given.
            if parameter not in self.analysis.uniform and not self.analysis.is_fixed(parameter):
                raise Refusal("a parameter may change")

    def check_head(self, statement):
        """Refuses the head of a loop around a barrier that may differ among threads."""
        initial, variables = statement.initial, getattr(statement.initial, "variables", [])
        if initial.kind != "empty" and not all(v in self.analysis.uniform for v in variables):
            raise Refusal("a loop around a barrier may differ among threads")
        if initial.kind not in ("empty", "declaration"):
            raise Refusal("a loop around a barrier with a variable from outside")
        steps = self.steps_of_head(statement)
        if steps is None or any(step.variable not in self.analysis.uniform for step in steps):
            raise Refusal("a loop around a barrier may differ among threads")

    # What may be computed again

    def find_recomputable(self):
        analysis = self.analysis
        moving = {v for v in analysis.uniform if analysis.changes[v]}
        heads = {
            v for s in self.levels if s.kind == "for" for v in getattr(s.initial, "variables", [])
        }
        stepped = {step.variable for step in self.steps}
        self.steady = analysis.uniform - (moving - heads) - stepped
        for variable in self.declared():
            if not self.has_barrier or variable not in analysis.uniform:
                self.try_recompute(variable)

    def try_recompute(self, variable):
        """Notes a variable that may be computed again, and how it changes along x."""
        analysis = self.analysis
        everything, analysis.uniform = analysis.uniform, self.steady
        can_be = analysis.is_fixed(variable) and analysis.is_recomputable(variable.initial)
        analysis.uniform = everything
        if not can_be or {"auto", "volatile"} & set(variable.specifiers) or variable.is_shadowed:
            return
        self.analysis.recomputable.add(variable)
        before = len(analysis.numerators)
        stride = self.analysis.stride(variable.initial)
        self.numerators[variable] = analysis.numerators[before:]
        if stride != INVARIANT and not self.program.is_integer(variable):
            stride = ANY
        self.analysis.strides[variable] = stride

    # What lives across a barrier

    def region_of(self, i):
        """Number of the region that a token is in, or None."""
        for number, region in enumerate(self.regions):
            if region[0].first <= i <= region[-1].last:
                return number
        return None

    def classify(self):
        """Finds the variables that live across a barrier."""
        if not self.has_barrier:
            return
        for variable in self.declared():
            if variable in self.analysis.uniform or variable in self.analysis.recomputable:
                continue
            if variable.is_shared:
                continue
            home = self.home_of(variable)
            if {self.region_of(i) for i in variable.uses} <= {home} and not self.escapes(variable):
                continue
            reason = self.storage_problem(variable)
            if reason:
                raise Refusal(reason)
            self.stored.append(variable)
        for region in self.regions:
            if not self.is_final(region) and any(has_return(s) for s in region):
                self.leaves_early = True

    def escapes(self, variable):
        """Whether an address of a variable may be used where the variable is not named."""
        return (
            self.has_holders
            or variable in self.analysis.pinned
            or any(self.hands_on(variable, i) for i in variable.uses)
        )

    def hands_on(self, variable, i):
        """Whether an array is named for its address, or an object may take one."""
        behind = i + 1
        if variable.dimensions:
            while self.text(behind) == "[":
                behind = self.tokens.match_forward(behind) + 1
            first, last = variable.dimensions
            depth = 0
            while first <= last:
                first, depth = self.tokens.match_forward(first) + 1, depth - 1
            first = i + 1
            while first < behind:
                first, depth = self.tokens.match_forward(first) + 1, depth + 1
            if depth < 0:
                return True
        if not self.has_locals_of_classes:
            return False
        is_argument = self.text(i - 1) in ("(", ",", "{") and self.text(behind) in (")", ",", "}")
        return is_argument or (self.text(behind) == "." and self.text(behind + 2) == "(")

    def home_of(self, variable):
        """Number of the region that declares a variable."""
        for number, region in enumerate(self.regions):
            if any(s.kind == "declaration" and variable in s.variables for s in region):
                return number
        return None

    def storage_problem(self, variable):
        """Why a variable cannot be kept from one region to the next; see `storage_problem`."""
        return storage_problem(self.program, self.function, variable)

    def storage(self, region):
        """Declares the arrays for what a region declares and others use."""
        found = [
            v for s in region if s.kind == "declaration" for v in s.variables if v in self.stored
        ]
        # Nothing else leads to what no address is taken of.
        restrict = "" if any(self.by_reference(v) for v in self.stored) else "__restrict "
        return "".join(
            "typedef %s emulator_type_%s%s; emulator_type_%s* %sconst emulator_all_%s = "
            "::emulator::take_locals<emulator_type_%s>(emulator_block); "
            % (v.type, v.name, self.dimensions(v), v.name, restrict, v.name, v.name)
            for v in found
        )

    def dimensions(self, variable):
        """The code of a variable's dimensions; "" if it has none."""
        return self.code(*variable.dimensions) if variable.dimensions else ""

    def by_reference(self, variable):
        """Whether a variable is used where it lies, and never copied from there and back.

        Its address may be known elsewhere; or it is an object, whose own functions may change it.
        """
        if variable.dimensions is not None or variable in self.analysis.pinned:
            return True
        return self.has_objects

    def types(self):
        """The types of the variables that are copied as bytes."""
        own = self.kept.union(self.stored)
        unknown = [v for v in own if not set(v.type.split()) <= TYPE_WORDS and "*" not in v.stars]
        types = sorted({v.type for v in unknown})
        return types if self.has_objects else ["::emulator::Moved<%s>" % name for name in types]


def is_empty(part):
    """Whether a range has no tokens."""
    return part[0] > part[1]


def storage_problem(program, function, variable):
    """Why there cannot be an array of a variable, or None."""
    words = [word for word in variable.type.replace("*", " ").split() if word != "const"]
    known = TYPE_WORDS | function.template_names() | program.aliases.keys()
    structs = {program.tokens.text(i + 1) for i in program.places.get("struct", ())}
    if "volatile" in variable.specifiers or variable.is_reference or variable.is_shadowed:
        return "`%s` lives across a barrier, or a loop" % variable.name
    if not all(word in known | structs for word in words) or not words:
        return "`%s` lives across a barrier, or a loop" % variable.name
    return None
