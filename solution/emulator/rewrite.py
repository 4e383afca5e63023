"""Turns CUDA C++ into plain C++ for the emulated GPU.

    python3 rewrite.py src/gpu_op.cu -o gpu_op.cu.cc

Macros do most of it (include/emulator/language.h). What they cannot do is done here:

- a launch, `kernel<<<grid, block>>>(arguments)`, becomes a call, see emulator/launch.h;
- a `__shared__` variable becomes a reference into the block's memory, see emulator/shared.h;
  a static one gets a check that it fits into the 48 KB of a block.

Text is inserted, and never moved to another line, so the compiler's errors name the lines of
the original file. What is wrong with the source itself is reported as file:line: error: ...
with exit code 1.
"""

import argparse
import os
import re
import sys
from collections import namedtuple

from cuda_tokens import CLOSING, COMMENT, OPENING, Tokens

STATIC_SHARED_BYTES = 48 * 1024

# Replaces source[start:end].
Edit = namedtuple("Edit", "start end text")

# Words before a parenthesis that make it no call.
NOT_CALLED = ("if", "while", "for", "switch", "return", "else", "do", "case", "throw", "sizeof")
# What may stand before __shared__ in a declaration.
SPECIFIERS = ("extern", "static", "volatile", "const", "__device__")


class SourceError(Exception):
    """Something is wrong with the source at a position."""

    def __init__(self, position, message):
        super().__init__(message)
        self.position = position


# --------------------------------------------------------------------------------------------
# Launches


def find_name(tokens, launch):
    """Index of the first token of the expression before the `<<<` at index `launch`, or None."""
    first = find_operand(tokens, launch - 1, launch)
    while first is not None and tokens.together(first - 1, launch):
        if tokens.text(first - 1) in (".", "->"):
            first = find_operand(tokens, first - 2, launch)
        elif tokens.text(first - 1) == "::":
            outer = tokens.all[first - 2] if tokens.together(first - 2, launch) else None
            if outer is None or outer.text in NOT_CALLED:
                return first - 1  # the global namespace
            if outer.kind != "word" and outer.text != ">":
                return first - 1
            first = find_operand(tokens, first - 2, launch)
        else:
            return first
    return first


def find_operand(tokens, last, launch):
    """Index of the first token of a name, call or parenthesis that ends at `last`, or None.

    `name`, `name<arguments>`, `name[i]`, `name(arguments)`, `(expression)`
    """
    i = last
    while i is not None and tokens.together(i, launch):
        token = tokens.all[i]
        if token.kind == "word":
            return None if token.text in NOT_CALLED else i
        if token.text == ">":
            i = tokens.template_backward(i)
        elif token.text in (")", "]"):
            i = tokens.match_backward(i)
            if i is not None and token.text == ")" and not is_callee(tokens, i - 1, launch):
                return i
        else:
            return None
        i = None if i is None else i - 1
    return None


def is_callee(tokens, index, launch):
    """Whether the token before a parenthesis makes it a call's."""
    if not tokens.together(index, launch):
        return False
    token = tokens.all[index]
    # f(x) or f[i](x); `if (x) (f)` and `template<class T> (f)` are none.
    return token.text == "]" or (token.kind == "word" and token.text not in NOT_CALLED)


def find_close(tokens, launch):
    """Index of the first `>` of the `>>>` that closes the `<<<` at index `launch`."""
    templates = 0
    i = launch + 1
    while tokens.together(i, launch):
        text = tokens.text(i)
        if text in OPENING:
            i = tokens.match_forward(i)
            if i is None:
                return None
        elif text in CLOSING or text == ";":
            return None
        elif text == "<":
            templates += tokens.all[i - 1].kind == "word"
        elif text == ">":
            run = closing_run(tokens, i)
            if run >= 3 and run > templates:
                return i + run - 3
            templates = max(0, templates - run)
            i += run - 1
        i += 1
    return None


def closing_run(tokens, index):
    """Number of `>` side by side from `index` on."""
    run = 1
    while tokens.text(index + run) == ">" and (
        tokens.all[index + run].start == tokens.all[index].start + run
    ):
        run += 1
    return run


def launch_edits(tokens, launch):
    """The edits for the launch whose `<<<` is at an index."""
    position = tokens.all[launch].start
    first = find_name(tokens, launch)
    if first is None:
        raise SourceError(position, "`<<<` without a kernel before it")
    begin, end = tokens.all[first].start, tokens.all[launch - 1].end
    name = " ".join(re.sub(r"\\\r?\n|%s" % COMMENT, " ", tokens.source[begin:end]).split())
    close = find_close(tokens, launch)
    if close is None:
        raise SourceError(position, "launch of `%s`: `<<<` without `>>>`" % name)
    edits = [
        Edit(
            begin,
            begin,
            "::emulator::kernel(EMULATOR_NAME(%s), [&](auto... emulator_args) { " % name,
        ),
        Edit(position, position + 3, "(emulator_args...); })("),
        Edit(tokens.all[close].start, tokens.all[close + 2].end, ")"),
    ]
    return edits + argument_edits(tokens, launch, close + 3, name)


def argument_edits(tokens, launch, index, name):
    """NULL is an integer to a template, so it becomes nullptr. Checks the parentheses, too."""
    if not tokens.together(index, launch) and tokens.all[launch].directive is not None:
        return []  # a macro that ends in >>>; the arguments stand where it is used
    position = tokens.all[launch].start
    if tokens.text(index) != "(":
        raise SourceError(position, "launch of `%s`: `(` expected after `>>>`" % name)
    last = tokens.match_forward(index)
    if last is None:
        raise SourceError(position, "launch of `%s`: `(` is not closed" % name)
    return [
        Edit(tokens.all[i].start, tokens.all[i].end, "nullptr")
        for i in range(index + 1, last)
        if tokens.text(i) == "NULL"
        and tokens.text(i - 1) in ("(", ",")
        and tokens.text(i + 1) in (")", ",")
    ]


def rewrite_launches(tokens):
    """The edits for all launches of a source."""
    edits = []
    for i, token in enumerate(tokens.all):
        # operator<<<T> is a name
        if token.text == "<<<" and tokens.text(i - 1) != "operator":
            edits += launch_edits(tokens, i)
    return edits


# --------------------------------------------------------------------------------------------
# Shared memory


def is_file_scope(tokens, index):
    """Whether a token is in no braces but those of namespaces and extern "C"."""
    depth = 0
    for i in range(index - 1, -1, -1):
        if not tokens.together(i, index) or tokens.all[index].directive is not None:
            continue
        if tokens.text(i) == "}":
            depth += 1
        elif tokens.text(i) == "{":
            if depth == 0 and not opens_namespace(tokens, i):
                return False
            depth = max(0, depth - 1)
    return tokens.all[index].directive is None


def opens_namespace(tokens, brace):
    """Whether a `{` is that of a namespace or of extern "C"."""
    i = brace - 1
    if tokens.all[i].kind == "text":
        return tokens.text(i - 1) == "extern"
    while i >= 0 and (tokens.all[i].kind == "word" or tokens.text(i) == "::"):
        if tokens.text(i) == "namespace":
            return True
        i -= 1
    return False


def find_declaration(tokens, index):
    """First and last index of the declaration around a `__shared__`; last is its `;`."""
    first = last = index
    while tokens.text(first - 1) in SPECIFIERS:
        first -= 1
    while tokens.together(last, index) and tokens.text(last) != ";":
        last = tokens.match_forward(last) if tokens.text(last) in OPENING else last
        if last is None:
            return first, None
        last += 1
    return first, last if tokens.together(last, index) else None


def find_declarators(tokens, first, last):
    """The variables of a declaration: for each the index of its name and of the token behind."""
    found, name, templates, i = [], None, 0, first
    while i <= last:
        text = tokens.text(i)
        if text in (",", ";") and templates == 0:
            if name is not None:
                found.append((name, i))
            name = None
        elif text in OPENING:
            if text == "(" and name == i - 1:  # __align__(16)
                name = None
            i = tokens.match_forward(i)
        elif text in ("<", ">"):
            templates += 1 if text == "<" else -1
        elif tokens.all[i].kind == "word" and templates == 0:
            name = i
        i += 1
    return found


def blank(tokens, first, last):
    """An edit that leaves spaces, so that columns stay."""
    start, end = tokens.all[first].start, tokens.all[last].end
    return Edit(start, end, re.sub(r"[^\n]", " ", tokens.source[start:end]))


def specifier_edits(tokens, first, last):
    """Takes away what a reference may not have, such as alignment."""
    edits, i = [], first
    while i < last:
        end = i
        if tokens.text(i) in ("__align__", "alignas", "__attribute__"):
            end = tokens.match_forward(i + 1)
        elif tokens.text(i) not in ("extern", "static", "__device__", "__shared__"):
            i += 1
            continue
        edits.append(blank(tokens, i, end))
        i = end + 1
    return edits


def shared_edits(tokens, index):
    """The edits for the declaration around the `__shared__` at an index."""
    first, last = find_declaration(tokens, index)
    declarators = find_declarators(tokens, first, last) if last is not None else []
    if not declarators:
        return []  # the compiler will complain
    is_dynamic = any(tokens.text(i) == "extern" for i in range(first, declarators[0][0]))
    value = " = EMULATOR_DYNAMIC_SHARED" if is_dynamic else " = EMULATOR_SHARED"
    edits = specifier_edits(tokens, first, last)
    if is_file_scope(tokens, first):
        # Each CPU thread's reference leads to its own memory.
        start = tokens.all[first].start
        edits.append(Edit(start, start, "static thread_local "))
    for name, behind in declarators:
        token, end = tokens.all[name], tokens.all[behind].start
        reference = "(&%s)" if tokens.text(name + 1) == "[" else "&%s"
        edits.append(Edit(token.start, token.end, reference % token.text))
        edits.append(Edit(end, end, value))
    if not is_dynamic and tokens.all[index].directive is None:
        edits.append(size_check(tokens, [name for name, _ in declarators], last))
    return edits


def size_check(tokens, names, last):
    """A check that static shared variables fit into a block's memory."""
    end = tokens.all[last].end
    size = " + ".join("sizeof(%s)" % tokens.text(name) for name in names)
    message = "a block has %d KB of static shared memory; hint: use less, or dynamic shared memory"
    message %= STATIC_SHARED_BYTES // 1024
    return Edit(end, end, ' static_assert(%s <= %d, "%s");' % (size, STATIC_SHARED_BYTES, message))


def rewrite_shared(tokens):
    """The edits for all shared variables of a source."""
    edits = []
    for i, token in enumerate(tokens.all):
        if token.text == "__shared__" and not tokens.is_defined(i):
            edits += shared_edits(tokens, i)
    return edits


# --------------------------------------------------------------------------------------------
# Files

PASSES = (rewrite_launches, rewrite_shared)

# `threadIdx.x < n` compares an unsigned with an int in nearly every kernel; nvcc says nothing.
# And `#pragma unroll` is for a GPU.
PROLOGUE = """\
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
"""


def apply_edits(source, edits):
    """The source with all edits made."""
    parts, position = [], 0
    for edit in sorted(edits):
        parts += [source[position : edit.start], edit.text]
        position = edit.end
    return "".join(parts) + source[position:]


def rewrite(source, path):
    """Plain C++ for a CUDA source; its compiler errors will name `path`."""
    tokens = Tokens(source)
    edits = [edit for rewrite_pass in PASSES for edit in rewrite_pass(tokens)]
    quoted = path.replace("\\", "\\\\").replace('"', '\\"')
    return PROLOGUE + '#line 1 "%s"\n' % quoted + apply_edits(source, edits)


def main():
    """Rewrites the file that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", help="CUDA source, as src/gpu_op.cu")
    parser.add_argument("-o", dest="output", required=True, help="the C++ file to write")
    arguments = parser.parse_args()
    try:
        with open(arguments.source, encoding="utf-8", errors="surrogateescape", newline="") as file:
            source = file.read()
    except OSError as error:
        print("%s: error: %s" % (arguments.source, error.strerror), file=sys.stderr)
        return 1
    try:
        text = rewrite(source, arguments.source)
    except SourceError as error:
        line = source.count("\n", 0, error.position) + 1
        print("%s:%d: error: %s" % (arguments.source, line, error), file=sys.stderr)
        return 1
    # Under its name only once it is whole, so that make does not take half a file for new.
    with open(
        arguments.output + ".new", "w", encoding="utf-8", errors="surrogateescape", newline=""
    ) as file:
        file.write(text)
    os.replace(arguments.output + ".new", arguments.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
