"""Finds loops in which a thread may wait for another, and lets the others of its block run there.

The threads of a block run one after another, so one that waits in a loop for what another is to
write would wait for ever. Each turn of such a loop calls the runtime, which goes on with another
thread after some turns:

    while (flag[b] == 0) {}       { ::emulator::Waiting emulator_waiting; while (flag[b] == 0)
                                  { ::emulator_turn();} }

What another thread writes is read as volatile, or by an atomic whose value is used; a loop may wait
if its end depends on it. One that does nothing else has waited when it ends: `Waiting` tells that
to the checked build, in which it orders what comes behind the loop.
"""

from cuda_source.functions import (
    BARRIER,
    CASTS,
    OPERATORS,
    PURE,
    call_name,
    find_functions,
    is_assignment,
)
from cuda_source.statements import TYPE_WORDS, Parser
from cuda_source.tokens import Edit

LOOPS = ("while", "for", "do")
PAUSES = ("__nanosleep", "__threadfence", "__threadfence_block", "__threadfence_system")
FRESH = ("__ldcv", "__ldcg")  # loads past a cache that knows of no other block's writes
OF_WARPS = ("__syncwarp", "__any_sync", "__all_sync", "__ballot_sync", "__shfl")
TURN = " ::emulator_turn();"
# Statements of a loop that does nothing but wait.
HARMLESS = ("block", "empty", "if", "break", "continue", "return", "expression", "declaration")


class Told:
    """Where a program reads what other threads may write meanwhile."""

    def __init__(self, tokens):
        self.tokens, self.text = tokens, tokens.text
        self.names = set(self.volatile_names())
        self.functions = [f for f in find_functions(tokens) if f.end is not None]
        self.tellers = set()  # names of functions that read so
        known = None
        while known != self.tellers:
            known = set(self.tellers)
            for function in self.functions:
                if function.name not in known and self.tells(function.brace, function.end):
                    self.tellers.add(function.name)

    def volatile_names(self):
        """Names that are declared as volatile anywhere: of variables, members and types."""
        for i, token in enumerate(self.tokens.all):
            if token.text != "volatile" or self.text(i - 1) in ("asm", "__asm__"):
                continue
            name = ""
            while self.text(i) not in ("", ";", ",", ")", "=", "{", "[", ">"):
                name = self.text(i) if self.tokens.all[i].kind == "word" else name
                i += 1
            if name not in TYPE_WORDS | {"volatile", "const"}:
                yield name

    def tells(self, first, last, span=None):
        """Whether tokens first .. last, of the loop or function that is a span, read so."""
        span = span or (first, last)
        return any(self.tells_at(i, span) for i in range(first, last + 1))

    def tells_at(self, i, span):
        """Whether the token at an index reads what others may write meanwhile."""
        text, is_called = self.text(i), self.text(i + 1) in ("(", "<")
        if self.tokens.all[i].kind != "word":
            return False
        if text.startswith("atomic") and is_called:
            return self.is_used(i) and not self.is_retried(i, span)
        if text == "volatile":
            return self.text(i - 1) not in ("asm", "__asm__")
        return text in self.names or (is_called and (text in self.tellers or text in FRESH))

    def is_used(self, i):
        """Whether the value of the call whose name stands at an index is used."""
        close, before = self.tokens.match_forward(i + 1), self.text(i - 1)
        if close is None or self.text(close + 1) != ";":
            return True
        if before == ")":
            opening = self.tokens.match_backward(i - 1) or 0
            return self.text(opening - 1) not in ("if", "for", "while")
        return before not in (";", "{", "}", "else", "do", ":")

    def is_retried(self, i, span):
        """Whether an atomicCAS expects what a turn before found there: then it waits for nobody."""
        commas = self.commas(i + 1)
        if not self.text(i).startswith("atomicCAS") or len(commas) < 2:
            return False
        return bool(set(map(self.text, range(*commas[:2]))) & self.assigned(*span))

    def commas(self, i):
        """Indices of the commas between the arguments whose ( stands at an index."""
        found, close = [], self.tokens.match_forward(i) or i
        i += 1
        while i < close:
            if self.text(i) == ",":
                found.append(i)
            i = (self.tokens.match_forward(i) or i) + 1
        return found

    def assigned(self, first, last):
        """Names that tokens first .. last give a value."""
        found = (i for i in range(first, last + 1) if is_assignment(self.tokens, i))
        return {self.text(self.target(i)) for i in found}

    def target(self, i):
        """Index of the last token before an = and what belongs to it, as the + of +=."""
        i -= 1
        while self.tokens.all[i].kind == "sign" and self.text(i) in "+-*/%&|^<>":
            i -= 1
        return i


class Loop:
    """A loop in a device function."""

    def __init__(self, told, function, statement):
        self.told, self.function, self.statement = told, function, statement
        self.tokens, self.text = told.tokens, told.tokens.text
        self.span = (statement.first, statement.last)
        self.inside = list(statement.inner.walk())
        self.is_known = all(s.kind != "other" for s in self.inside)

    def may_wait(self):
        """Whether its end depends on other threads."""
        words = {self.text(i) for i in range(self.span[0], self.span[1] + 1)}
        if any(word.startswith(BARRIER) for word in words):
            return False
        if self.told.tells(*self.span) and (self.ends_by_others() or not self.is_known):
            return True
        return bool(words & set(PAUSES)) and self.does_nothing_else()

    def only_waits(self):
        """Whether it does nothing else, either."""
        return self.is_known and self.ends_by_others() and self.does_nothing_else()

    def edits(self):
        """Lets others run at each turn, and tells who has waited."""
        inner = self.statement.inner
        first, last = self.tokens.all[inner.first], self.tokens.all[inner.last]
        if inner.kind == "block":
            yield Edit(first.end, first.end, TURN)
        else:
            yield Edit(first.start, first.start, "{" + TURN + " ")
            yield Edit(last.end, last.end, " }")
        first, last = (self.tokens.all[i] for i in self.span)
        before = self.tokens.all[self.span[0] - 1].end
        if self.only_waits() and "pragma" not in self.tokens.source[before : first.start]:
            yield Edit(first.start, first.start, "{ ::emulator::Waiting emulator_waiting; ")
            yield Edit(last.end, last.end, " }")

    def ends_by_others(self):
        """Whether one of the conditions that end it depends on what others may write."""
        ends = [s.condition for s in self.choices() if self.leaves(s)]
        told = self.told_names()
        return any(self.is_told(one, told) for one in [self.statement.condition, *ends])

    def choices(self):
        """Its `if` statements."""
        return [s for s in self.inside if s.kind == "if"]

    @staticmethod
    def leaves(choice):
        """Whether a statement may leave the loop."""
        return any(s.kind in ("break", "return") for s in choice.walk())

    def is_told(self, condition, names):
        """Whether a condition names what others may write, or a variable that got it."""
        words = {self.text(i) for i in range(condition[0], condition[1] + 1)}
        return bool(words & names) or self.told.tells(*condition, self.span)

    def told_names(self):
        """Variables whose values depend on what others may write."""
        found, known = set(), None
        while known != found:
            known = set(found)
            for i in range(*self.span):
                if is_assignment(self.tokens, i):
                    if self.is_told((i, self.end_of_value(i)), found):
                        found.add(self.text(self.told.target(i)))
            for choice in self.choices():
                if self.is_told(choice.condition, found):
                    found |= self.told.assigned(choice.first, choice.last)
        return found

    def end_of_value(self, i):
        """Index of what ends the value behind the = at an index."""
        while i < self.span[1] and self.text(i) not in (";", ",", ")"):
            i = (self.tokens.match_forward(i) or i) + 1
        return i

    def does_nothing_else(self):
        """Whether it writes nothing but variables of its thread, as far as is seen."""
        if any(s.kind not in HARMLESS for s in self.inside):
            return False
        return all(self.is_harmless(i) for i in range(self.span[0], self.span[1] + 1))

    def is_harmless(self, i):
        """Whether the token at an index writes no memory and calls nothing that may."""
        text = self.text(i)
        if text in ("+", "-") and self.text(i + 1) == text and self.tokens.adjacent(i):
            return self.is_own(i - 1) or self.is_own(i + 2)
        if is_assignment(self.tokens, i):
            return self.is_own(self.told.target(i))
        return text != "(" or self.is_harmless_call(i)

    def is_own(self, i):
        """Whether a token is the whole name of a variable that the thread has to itself."""
        before, name = self.text(i - 1), self.text(i)
        if before in (".", "->", "::", "*") or name in self.told.names:
            return False
        named = [v for v in self.function.variables() if v.name == name]
        return bool(named) and not any(
            v.is_shared or v.is_reference or v.dimensions or "static" in v.specifiers for v in named
        )

    def is_harmless_call(self, i):
        """Whether what is called at a ( changes nothing but by atomics."""
        index = call_name(self.tokens, i)
        if index is None:
            return True
        name = self.text(index)
        if name.startswith("atomic") or name in (*OPERATORS, *CASTS, *PAUSES, *FRESH):
            return True
        if name in PURE or name in TYPE_WORDS or name.startswith(OF_WARPS):
            return True
        called = [f for f in self.told.functions if f.name == name]
        return bool(called) and all(self.only_reads(function) for function in called)

    def only_reads(self, function):
        """Whether a function of the program returns what it reads, and nothing more."""
        begin = function.brace + 1
        return (
            self.text(begin) == "return"
            and self.text(function.end - 1) == ";"
            and function.parameters is not None
            and not any(
                is_assignment(self.tokens, i)
                or self.text(i) + self.text(i + 1) in ("++", "--")
                or (self.text(i) == ";" and i + 1 < function.end)
                or (self.text(i) == "(" and not self.is_plain_call(i))
                for i in range(begin, function.end)
            )
        )

    def is_plain_call(self, i):
        """Whether what is called at a ( is no function of the program."""
        index = call_name(self.tokens, i)
        name = "" if index is None else self.text(index)
        known = (*OPERATORS, *CASTS, *FRESH)
        return name == "" or name.startswith("atomic") or name in known or name in PURE


def waiting_loops(tokens):
    """The loops of device functions in which a thread may wait for another."""
    if not tokens.is_balanced:
        return []
    told, found = Told(tokens), []
    for function in told.functions:
        if function.parameters is None:
            continue
        tails = set()  # the `while` of each `do`
        for i in range(function.brace + 1, function.end):
            if tokens.text(i) not in LOOPS or i in tails:
                continue
            statement = Parser(tokens).statement(i, function.end)
            if statement.kind == "do":
                tails.add(statement.condition[0] - 2)
            if statement.kind in LOOPS:
                found.append(Loop(told, function, statement))
    return [loop for loop in found if loop.may_wait()]


def let_others_run(tokens):
    """Edits that call the runtime in loops that may wait."""
    return [edit for loop in waiting_loops(tokens) for edit in loop.edits()]
