"""Finds how the threads of a region may go together: see thread_loops.py, which writes them.

A parallel region is a list of statements without a barrier.
"""

from block_loops.strided_loops import StridedLoops
from block_loops.strides import CONSECUTIVE
from cuda_source.functions import is_built_in


class VectorGroups(StridedLoops):
    """What may be done side by side in one region of a kernel."""

    def __init__(self, kernel, statements):
        self.kernel, self.statements = kernel, statements
        self.analysis, self.code = kernel.analysis, kernel.code
        self.is_cut = kernel.has_barrier  # whether a thread comes back to its variables
        self.guards = []  # declarations, and (condition, whether it must hold)
        self.loops = {}  # loops that chunks of threads take together, with their variables
        self.strided_loops = set()  # loops of which they take each turn for neighbours
        self.ahead = []  # tokens at which `p[i]` begins that may be read ahead
        self.edits, self.loads = [], ""  # what that changes
        self.choices = []  # ifs whose conditions are checked for all threads of a row first
        self.is_chosen = False  # while text is written for threads that all enter these
        self.moved = []  # variables that live across a barrier, while a chunk runs
        self.compared = []  # variables that grow by 1, or are the same, in a row or chunk
        self.kept = []  # variables that live across the start or end of such a loop

    # The conditions around the body

    def peel(self, statements):
        """Notes declarations and conditions at the beginning; returns the rest."""
        while statements:
            first = statements[0]
            if first.kind == "declaration" and first.variables[0] in self.analysis.recomputable:
                self.guards.append(first.variables[0])
            elif first.kind == "if" and first.otherwise is None and self.may_guard(first):
                if is_return(first.then):
                    self.guards.append((first.condition, False))
                elif len(statements) == 1:
                    self.guards.append((first.condition, True))
                    inner = self.kernel.listed(first.then)
                    self.find_recomputable(inner)
                    return self.peel(inner)
                else:
                    break
            elif first.kind != "empty":
                break
            statements = statements[1:]
        return statements

    def may_guard(self, statement):
        """Whether an `if` may guard what a group of threads does together."""
        if is_return(statement.then) and not self.kernel.is_final(self.statements):
            return False
        return self.analysis.is_recomputable(statement.condition)

    def find_recomputable(self, statements):
        """Finds variables of an inner block that may be computed again."""
        for statement in statements:
            if statement.kind == "declaration":
                for variable in statement.variables:
                    self.kernel.try_recompute(variable)

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

    def is_invariant(self, part, variables=()):
        """Whether an expression is the same for the threads of a chunk."""
        analysis = self.analysis
        allowed = analysis.uniform | analysis.recomputable | set(variables)
        allowed |= {v for group in self.loops.values() for v in group}
        if part[0] > part[1]:
            return True
        return not analysis.varies(part) and analysis.is_pure(part, allowed, True)

    def find_loops(self, statements):
        """Finds the uniform loops in a list of statements, outer ones first."""
        program, tokens = self.kernel.program, self.kernel.tokens
        if any(program.is_ordered(s.first, s.last, tokens) for s in statements):
            return
        self.find_recomputable(statements)
        for statement in statements:
            if statement.kind == "for" and self.is_together(statement):
                self.loops[statement] = statement.initial.variables
                self.kernel.steady |= set(statement.initial.variables)
                self.analysis.uniform |= set(statement.initial.variables)
                self.find_loops(self.kernel.listed(statement.inner))
            elif self.is_strided(statement):
                self.strided_loops.add(statement)
            elif statement.kind == "block":
                self.find_loops(statement.body)

    def is_together(self, statement):
        """Whether all threads of a group go through a loop together."""
        variables = getattr(statement.initial, "variables", [])
        if not variables or has_return(statement) or leaves_loop(statement.inner):
            return False
        for variable in variables:
            if variable.initial is None or not self.is_invariant(variable.initial):
                return False
            if variable.dimensions or variable.is_reference or variable in self.analysis.pinned:
                return False
            first, last = statement.step
            if not all(first <= i <= last for i in self.analysis.changes[variable]):
                return False
        return self.is_invariant(statement.condition, variables) and self.is_step(
            statement, variables
        )

    def is_step(self, statement, variables):
        """Whether the third part of a loop's head changes its own variables alone."""
        steps = self.kernel.steps_of_head(statement)
        return steps is not None and all(
            step.variable in variables
            and (step.value is None or self.is_invariant(step.value, variables))
            for step in steps
        )

    def keep(self, body):
        """Finds what lives across a loop's start or end; False if it cannot be kept."""
        pieces = [piece for kind, piece in self.pieces(body) if kind == "together"]
        pieces += [[piece] for kind, piece in self.pieces(body) if kind == "strided"]
        if any(
            self.analysis.conflict(one, other)
            for one in pieces
            for other in pieces
            if one is not other
        ):
            return False
        for piece in pieces:
            for variable in declared(piece):
                if variable in self.analysis.recomputable or variable in self.kernel.stored:
                    continue
                outside = any(not (piece[0].first <= i <= piece[-1].last) for i in variable.uses)
                if outside or self.kernel.escapes(variable):
                    if self.kernel.storage_problem(variable):
                        return False
                    self.kept.append(variable)
        # What lives across barriers is near at hand meanwhile.
        names = self.analysis.names(*self.span(body)) | set(declared(body))
        by_reference = self.kernel.by_reference
        self.moved = [v for v in self.kernel.stored if v in names and not by_reference(v)]
        self.kernel.kept |= set(self.kept)
        self.kept += self.moved
        return True

    def pieces(self, statements):
        """The parts of a list: loops and blocks that are cut, and ("together", statements)."""
        piece, cut = [], self.loops.keys() | self.strided_loops
        for statement in statements:
            inner = statement.kind == "block" and any(s in cut for s in statement.walk())
            if statement not in cut and not inner:
                if not self.is_computed(statement):
                    piece.append(statement)
                    continue
                yield "recomputed", statement  # does not cut
                continue
            if piece:
                yield "together", piece
            piece = []
            if statement in self.strided_loops:
                yield "strided", statement
                continue
            yield "open", statement
            yield from self.pieces(self.kernel.listed(statement.inner if not inner else statement))
            yield "close", statement
        if piece:
            yield "together", piece

    def is_computed(self, statement):
        """Whether a statement declares nothing but what may be computed again."""
        return statement.kind == "empty" or (
            statement.kind == "declaration"
            and all(v in self.analysis.recomputable for v in statement.variables)
        )

    def needed(self, first, last, but=()):
        """The recomputable variables that a range of tokens needs, in their order."""
        found, todo = set(), self.analysis.names(first, last)
        while todo:
            variable = todo.pop()
            if variable in self.analysis.recomputable and variable not in found:
                found.add(variable)
                todo |= self.analysis.names(*variable.initial)
        return sorted(found - set(but), key=lambda v: v.initial[0])

    def span(self, statements):
        """The first and the last token of some statements."""
        return statements[0].first, statements[-1].last

    def find_ahead(self, body):
        """Finds `p[i]` behind ? or : that may be read whether or not it is chosen.

        Only where all of the row's lie in an allocation, which row_checks.py asks, and where the
        thread has written nothing before. A choice between two values that are both there is what
        a compiler can vectorise.
        """
        owner, text = self.analysis.owner, self.kernel.text
        consecutive = {v for v in self.compared if self.analysis.strides[v] == CONSECUTIVE}
        for i in range(body[0].first, body[-1].last - 3) if body else ():
            array = owner.get(i)
            if text(i - 1) not in ("?", ":") or text(i + 4) not in (":", ";"):
                continue
            if array in self.kernel.function.parameters and array.stars == "*":
                if [text(i + 1), text(i + 3)] == ["[", "]"] and owner.get(i + 2) in consecutive:
                    if self.analysis.is_fixed(array) and "volatile" not in array.specifiers:
                        if not self.has_written(body, i):
                            self.ahead.append(i)

    def has_written(self, body, i):
        """Whether memory may be written in a body before the value of a token is read."""
        for statement in body:
            if not self.is_quiet(statement):
                return True
            is_own = statement.first <= i <= statement.last
            writes = [k for k in range(statement.first, statement.last + 1)
                      if self.analysis.is_memory(k) and self.analysis.may_write(k)]  # fmt: skip
            # `out[j] = c ? p[i] : 0` writes last.
            if is_own and statement.kind == "expression":
                return any(k != statement.first for k in writes) or any(
                    self.kernel.text(k) == "(" and self.kernel.text(k - 1) in self.functions()
                    for k in range(statement.first, statement.last)
                )
            if is_own or writes:
                return bool(writes) or statement.kind != "declaration"
            if statement.kind == "expression":
                first = self.analysis.owner.get(statement.first)
                if first is None or not is_number(first):
                    return True
        return True

    def is_quiet(self, statement):
        """Whether a statement changes one thing at most, and calls nothing of the program's."""
        analysis, text = self.analysis, self.kernel.text
        if statement.kind not in ("declaration", "expression", "empty"):
            return False
        changes = 0
        begins = {v.initial[0] - 1 for v in analysis.variables if v.initial is not None}
        for k in range(statement.first, statement.last + 1):
            changes += text(k) == "=" and not (analysis.is_comparison(k) or k in begins)
            doubled = text(k) in ("+", "-") and text(k + 1) == text(k)
            changes += 2 * (doubled and self.kernel.tokens.adjacent(k))
            changes += text(k) in ("<<=", ">>=") or (text(k) == ">" and text(k + 1) == ">=")
            variable = analysis.owner.get(k)
            is_object = variable is not None and not is_number(variable) and text(k + 1) != "."
            if text(k) in self.functions() or (is_object and "*" not in variable.stars):
                return False
        variables = getattr(statement, "variables", ())
        return changes <= 1 and all(is_number(v) or "*" in v.stars for v in variables)

    def functions(self):
        """The program's functions by name."""
        return self.kernel.program.functions

    def find_choices(self, body):
        """Finds ifs with a condition like `i < n`, and nothing but expressions inside."""
        for statement in body:
            if statement.kind == "if" and self.analysis.is_recomputable(statement.condition):
                if self.analysis.bounded(statement.condition) is None:
                    continue
                inner = [s for s in statement.walk() if s is not statement]
                if all(s.kind in ("expression", "block", "if", "empty") for s in inner):
                    self.choices.append(statement)

    def is_falling(self):
        """Whether the active threads of a row come first, if its integers are consecutive."""
        kinds = [isinstance(guard, tuple) for guard in self.guards]
        if self.kernel.leaves_early or sorted(kinds) != kinds:
            return False
        return all(
            self.analysis.is_falling(condition, not wanted)
            for condition, wanted in (g for g in self.guards if isinstance(g, tuple))
        )


def is_number(variable):
    """Whether a variable's words are a number's."""
    return is_built_in(variable) and not variable.stars and variable.dimensions is None


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
