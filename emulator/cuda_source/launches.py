"""Launches, `kernel<<<grid, block>>>(arguments)`, become calls, see emulator/launch.h."""

import re

from cuda_source.tokens import CLOSING, COMMENT, OPENING, Edit, SourceError, blank

# Words before a parenthesis that make it no call.
NOT_CALLED = ("if", "while", "for", "switch", "return", "else", "do", "case", "throw", "sizeof")


def find_name(tokens, launch):
    """Index of the first token of the expression before the `<<<` at index `launch`, or None."""
    first = find_operand(tokens, launch - 1)
    while first is not None:
        if tokens.text(first - 1) == "template" and tokens.text(first - 2) in (".", "->", "::"):
            first -= 1  # ns::template k<3>
        if tokens.text(first - 1) in (".", "->"):
            first = find_operand(tokens, first - 2)
        elif tokens.text(first - 1) == "::":
            outer = tokens.text(first - 2)
            if outer in NOT_CALLED or not (is_word(tokens, first - 2) or outer == ">"):
                return first - 1  # the global namespace
            first = find_operand(tokens, first - 2)
        else:
            return first
    return first


def find_operand(tokens, last):
    """Index of the first token of a name, call or parenthesis that ends at `last`, or None.

    `name`, `name<arguments>`, `name[i]`, `name(arguments)`, `name{arguments}`, `(expression)`
    """
    i = last
    while i is not None and i >= 0:
        token = tokens.all[i]
        if token.kind == "word":
            return None if token.text in NOT_CALLED else i
        if token.text == ">":
            i = tokens.template_backward(i)
        elif token.text in CLOSING:
            i = tokens.match_backward(i)
            if i is not None and token.text == ")" and not is_callee(tokens, i - 1):
                return i
            if i is not None and token.text == "}" and tokens.text(i - 1) == "]":
                return tokens.match_backward(i - 1)  # []{ return kernel; }
        else:
            return None
        i = None if i is None else i - 1
    return None


def is_callee(tokens, index):
    """Whether the token before a parenthesis makes it a call's."""
    # f(x) or f[i](x); `if (x) (f)` and `template<class T> (f)` are none.
    if tokens.text(index) == ">":
        index = (tokens.template_backward(index) or 0) - 1
    text = tokens.text(index)
    if text == "}":  # []{ return kernel; }(), and no statement before a parenthesis
        return tokens.text((tokens.match_backward(index) or 0) - 1) == "]"
    return text == "]" or (is_word(tokens, index) and text not in (*NOT_CALLED, "template"))


def is_word(tokens, index):
    """Whether a token is a name."""
    return 0 <= index < len(tokens.all) and tokens.all[index].kind == "word"


def find_close(tokens, launch):
    """Index of the first `>` of the `>>>` that closes the `<<<` at index `launch`."""
    templates = 0
    i = launch + 1
    while i < len(tokens.all):
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
    """Number of `>` one after another from `index` on, as in `>>>` and `>> >`."""
    run = 1
    while tokens.text(index + run) == ">":
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
    last = find_arguments_end(tokens, launch, close + 3, name)
    site = "(::emulator::Configuration(EMULATOR_NAME(%s), " % name
    # Pieces, since other passes may have edits in between.
    edits = [blank(tokens, i, i) for i in range(first, launch)]
    return edits + [
        replaced(tokens, launch, launch, site),
        replaced(tokens, close, close + 2, "), %s" % name),
        Edit(tokens.all[last].end, tokens.all[last].end, ")"),
    ]


def replaced(tokens, first, last, text):
    """An edit that puts a text in the place of tokens, and keeps the lines."""
    start, end = tokens.all[first].start, tokens.all[last].end
    return Edit(start, end, text + re.sub(r"[^\n]", "", tokens.source[start:end]))


def find_arguments_end(tokens, launch, index, name):
    """Index of the `)` of a launch whose arguments begin at `index`."""
    position = tokens.all[launch].start
    if tokens.text(index) != "(":
        raise SourceError(position, "launch of `%s`: `(` expected after `>>>`" % name)
    last = tokens.match_forward(index)
    if last is None:
        raise SourceError(position, "launch of `%s`: `(` is not closed" % name)
    return last


def split_arguments(tokens, first, last):
    """Index pairs of the first and last tokens of the arguments between two parentheses."""
    found, begin, i = [], first + 1, first + 1
    while i <= last:
        if i == last or tokens.text(i) == ",":
            found.append((begin, i - 1))
            begin = i + 1
        elif tokens.text(i) in OPENING:
            i = tokens.match_forward(i)
        i += 1
    return found


def rewrite_launches(tokens):
    """The edits for all launches of a source."""
    edits = []
    for i, token in enumerate(tokens.all):
        # operator<<<T> is a name
        if token.text == "<<<" and tokens.text(i - 1) != "operator":
            edits += launch_edits(tokens, i)
    return edits
