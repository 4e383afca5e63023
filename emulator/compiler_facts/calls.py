"""Which function calls which, as GCC understood it: -fdump-tree-lower-lineno-uid-asmname.

There each function stands by itself, also each instance of a template, with the variable that says
who runs it (cuda_source/execution_spaces.py), and each call names the one function that was chosen.
What is not evaluated, or left out by `if constexpr`, is not there.
"""

import linecache
import re
from collections import namedtuple

from compiler_facts.host_library import of_library
from cuda_source.execution_spaces import DEVICE, HOST

OPTION = "-fdump-tree-lower-lineno-uid-asmname="
FUNCTION = re.compile(r"^;; Function (.*) \((\S+), funcdef_no=\d+, decl_uid=(\d+),.*\)", re.M)
MARK = re.compile(r"^ .* emulator_(%s|%s)_(\d+)D\.\d+;" % (HOST, DEVICE), re.M)
PLACE = r"\[([^][\n]+):(\d+):\d+(?: discrim \d+)?\] "
CALL = re.compile(r"^ *%s(?:[^\n(]* = |\S.*? = )?(\S+?)D\.(\d+) \(" % PLACE, re.M)
# A constructor that copies, or a destructor.
COPIES = re.compile(r"C[0-9]?E(?:RK?|O)S|D[0-9]?Ev")
# A constructor or destructor has a name for each way to call it.
WAYS = re.compile(r"([CD])[0-9]E")
WHO = {HOST: "the host", DEVICE: "the GPU"}
LAMBDA = re.compile(r"E(?:NK?)?Ul")
# file and line are the call's; caller and callee a Body each, or what a library has.
Call = namedtuple("Call", "file line caller callee")


class Function:
    """A function in a dump: its name for the linker, and the number of its mark, if it has one."""

    def __init__(self, name, text):
        mark = MARK.search(text)
        self.name, self.text = name, text
        self.number = int(mark.group(2)) if mark else None


def functions_of(dump):
    """The functions, by their numbers in the dump and by their names for the linker."""
    heads = list(FUNCTION.finditer(dump))
    ends = [head.start() for head in heads[1:]] + [len(dump)]
    found = {}
    for head, end in zip(heads, ends):
        name = WAYS.sub(r"\1E", head.group(2))
        found[head.group(3)] = found[name] = Function(name, dump[head.end() : end])
    return found


def caller_of(function, found):
    """The number of the function that runs a function's calls; a lambda runs in what it is in."""
    name = function.name
    while function.number is None and name.startswith("_ZZ"):
        name = "_Z" + name[3:]
        around = [
            other for other in found.values()
            if name.startswith(other.name) and LAMBDA.match(name, len(other.name))
        ]  # fmt: skip
        if not around:
            return None
        function = max(around, key=lambda other: len(other.name))
        name = function.name
    return function.number


def wrong_calls(dump, bodies):
    """The calls that nvcc refuses, of functions of the host by the device and the other way round.

    Args:
        dump: what GCC wrote.
        bodies: {number: Body}, of execution_spaces.py.
    """
    found, wrong = functions_of(dump), set()
    for function in dict.fromkeys(found.values()):
        caller = bodies.get(caller_of(function, found))
        if caller and caller.has_lambdas_of_device and function.number is None:
            continue
        for match in CALL.finditer(function.text) if caller else ():
            file, line, name, uid = match.groups()
            name = WAYS.sub(r"\1E", name)
            callee = found.get(uid) or found.get(name)
            callee = bodies.get(callee.number) if callee else None
            text = linecache.getline(file, int(line))
            call = Call(file, int(line), caller, callee or of_library(name, found, text))
            if call.callee and is_wrong(call) and not copies_argument(call, name):
                wrong.add(call)
    return sorted(wrong, key=lambda call: (call.file, call.line, call.callee.name))


def is_wrong(call):
    """Whether a function of the one calls one of the other; a launch is a call, too."""
    caller, callee = call.caller, call.callee
    return {caller.space, callee.space} == {HOST, DEVICE} and callee.kind != "kernel"


def copies_argument(call, name):
    """Whether a call may be one by which a kernel that launches itself copies its arguments."""
    is_first_line = (call.file, call.line) == call.caller.place
    return is_first_line and call.caller.kind == "kernel" and bool(COPIES.search(name))


def told(calls, takes_constexpr):
    """What is said of wrong calls, a line each."""
    return "".join(
        "%s:%d: error: %s\n" % (call.file, call.line, sentence(call)) for call in calls
        if not (takes_constexpr and call.callee.is_constexpr)
    )  # fmt: skip


def sentence(call):
    """What is wrong with a call, and what to do."""
    caller, callee = call.caller, call.callee
    more = ", or compile with --expt-relaxed-constexpr" if callee.is_constexpr else ""
    return "the %s `%s`, which %s runs, calls `%s`, which only %s runs; hint: %s%s" % (
        caller.kind, caller.name, WHO[caller.space], callee.name, WHO[callee.space], callee.hint,
        more,
    )  # fmt: skip
