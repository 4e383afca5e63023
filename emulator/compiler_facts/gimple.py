"""Reads what GCC understood of a source: -fdump-tree-gimple.

There each address of a variable is an `&`, however it was spelt, and each statement does one thing.
"""

import re
from collections import Counter

# What a kernel's second version has in its head, and its lambdas in their names.
NUMBER = re.compile(r"\bemulator_number_(\d+)\b|\bKernelOf<(\d+)>")
# `&v`, and `&__closure->__v` of what a lambda holds a copy of; but not `&D.17`, a temporary.
ADDRESS = re.compile(r"&(?:__closure->__)?(\w+)\b(?!\.\d)")
BY_REFERENCE = re.compile(r"& (\w+) \[value-expr: ")
# A lambda gets what it captures, which is seen again in the lambda.
CAPTURE = re.compile(r" *(?:emulator_\w+|D\.\d+)\.__(\w+) = (?:&|__closure->__)\1;")
CAPTURED = re.compile(r" *([\w.]+) = __closure->__(\w+);")
READ = re.compile(r" *[\w.]+ = (?:\([^()]*\) )?(?:\*[\w.]+|[\w.]+->[\w.]+);")
DECLARED = re.compile(r" *(const )?.*?(\w+);")
ASSIGNED = re.compile(r" *(\w+)((?:\.[A-Za-z_]\w*|\[[^]]*\])*) = (?!\{CLOBBER)")


def seen(dump, believed):
    """{number: names} of variables whose addresses are taken, as a dump says, or that are constants
    and change. `believed`: {number: names} of those of which none should be."""
    found = {}
    for function in dump.split("\n}\n"):
        head, _, body = function.lstrip("\n").partition("\n{\n")
        number = NUMBER.search(head)
        number = int(number.group(1) or number.group(2)) if number else None
        if believed.get(number):
            found.setdefault(number, set()).update(known(head, body) & set(believed[number]))
    return {number: names for number, names in found.items() if names}


def known(head, body):
    """The names whose address is taken in a function, or that are constants and change."""
    names, held, places = set(), set(BY_REFERENCE.findall(body)), {}
    declared, assigned, variables = Counter(), Counter(), set(re.findall(r"(\w+)[,)]", head))
    for line in body.splitlines():
        if "[value-expr: " in line or CAPTURE.fullmatch(line):
            continue
        names.update(ADDRESS.findall(line))
        captured = CAPTURED.fullmatch(line)
        if captured and captured.group(2) in held:
            places[captured.group(1)] = captured.group(2)
        elif not captured and "__closure->__" in line:
            names |= held & set(re.findall(r"__closure->__(\w+)", line))
        elif places and not READ.fullmatch(line):
            # What a lambda holds by reference may be read; what else is done is its address.
            names.update(places[word] for word in re.findall(r"[\w.]+", line) if word in places)
        if " = " in line:
            assigned.update(match.groups() for match in [ASSIGNED.match(line)] if match)
        elif "(" not in line and (declaration := DECLARED.fullmatch(line)):
            declared[declaration.group(2)] += 1
            variables |= set() if declaration.group(1) else {declaration.group(2)}
    # A cast may have given a constant another value, or a part of it.
    parts = {name for name, part in assigned if part and (name, "") in assigned}
    often = {name for (name, _), count in assigned.items() if count > declared[name] > 0}
    return names | ((parts | often) - variables)
