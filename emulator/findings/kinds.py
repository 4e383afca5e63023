"""What each kind of finding is called, where it often comes from, and what helps.

The table itself is src/checked/kinds.h, which the runtime includes too.
"""

import ast
import collections
import os
import re

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "src", "checked", "kinds.h")

# sentence: who did what, for kinds that are not the access of one thread; else "".
Words = collections.namedtuple("Words", "title cause hint sentence")


def rows(text):
    """The rows of the table, each as its macro and its arguments; names stand for their texts."""
    python = re.sub(r"(?ms)^/\*.*?\*/|^//.*?$", lambda part: "\n" * part[0].count("\n"), text)
    calls = [statement.value for statement in ast.parse(python).body]
    names = {"kNone": None}
    for call in calls:  # first, so that a row may name a later one
        names[call.args[0].id] = call.args[1].value
    for call in calls:
        args = [names[a.id] if isinstance(a, ast.Name) else a.value for a in call.args[1:]]
        yield call.func.id, args


with open(TABLE, encoding="utf-8") as table:
    _ROWS = list(rows(table.read()))

# What turns out to be one of the kinds below, or nothing, once its lines are known.
CANDIDATES = dict(args for macro, args in _ROWS if macro == "CANDIDATE")
WORDS = {kind: Words(*words) for macro, (kind, *words) in _ROWS if macro == "KIND"}
