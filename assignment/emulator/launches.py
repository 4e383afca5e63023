"""Launches, `kernel<<<grid, block>>>(arguments)`, become calls, see emulator/launch.h."""

import re
from collections import Counter

from cuda_tokens import CLOSING, COMMENT, OPENING, Edit, SourceError, blank, text_of
from functions import find_functions

# What NULL may become.
NULLS = ("0", "0L", "__null", "NULL")
# Words before a parenthesis that make it no call.
NOT_CALLED = ("if", "while", "for", "switch", "return", "else", "do", "case", "throw", "sizeof")


def find_name(tokens, launch):
    """Index of the first token of the expression before the `<<<` at index `launch`, or None."""
    first = find_operand(tokens, launch - 1)
    while first is not None:
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

    `name`, `name<arguments>`, `name[i]`, `name(arguments)`, `(expression)`
    """
    i = last
    while i is not None and i >= 0:
        token = tokens.all[i]
        if token.kind == "word":
            return None if token.text in NOT_CALLED else i
        if token.text == ">":
            i = tokens.template_backward(i)
        elif token.text in (")", "]"):
            i = tokens.match_backward(i)
            if i is not None and token.text == ")" and not is_callee(tokens, i - 1):
                return i
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
    parameters, arguments, edits = argument_edits(tokens, close + 3, last)
    opening = "::emulator::emulator_kernel(EMULATOR_NAME(%s), " % name
    if names_kernel(tokens, first, launch - 1):
        opening += "[=](%s) { " % parameters
        calls = "(%s); }%s" % (arguments, whole_block(name, parameters, arguments))
    else:  # which kernel it is, is asked once
        opening += "[=, emulator_chosen = "
        calls = "](%s) { emulator_chosen(%s); }" % (parameters, arguments)
    return edits + [
        Edit(begin, begin, opening),
        replaced(tokens, launch, launch, calls + ")("),
        replaced(tokens, close, close + 2, ")"),
    ]


def names_kernel(tokens, first, last):
    """Whether tokens before a launch name a kernel, and compute nothing."""
    while tokens.text(last) == ")" and tokens.match_backward(last) == first:
        first, last = first + 1, last - 1
    if tokens.text(first) == "*" or tokens.text(last) in (")", "]"):
        return False
    return tokens.text(last) == ">" or tokens.text(last - 1) not in (".", "->")


def replaced(tokens, first, last, text):
    """An edit that puts a text in the place of tokens, and keeps the lines."""
    start, end = tokens.all[first].start, tokens.all[last].end
    return Edit(start, end, text + re.sub(r"[^\n]", "", tokens.source[start:end]))


def whole_block(name, parameters, arguments):
    """A lambda more: the same call of the version that runs a whole block, if there is one."""
    if "(" in name:
        return ""
    parameters = ", ".join(filter(None, ["auto emulator_block", parameters]))
    call = "%s(%s)" % (name, ", ".join(filter(None, ["emulator_block", arguments])))
    return ", [=](%s) -> decltype(%s) { return %s; }" % (parameters, call, call)


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


def is_only_in_call(tokens, begin, end, several):
    """Whether an argument means something in the call itself alone: 0, {1, 2}, a template."""
    if tokens.text(begin) == "{":
        return tokens.match_forward(begin) == end
    return begin == end and (tokens.text(begin) in NULLS or tokens.text(begin) in several)


def names_of_several(tokens):
    """Names of functions that are templates, or have overloads."""
    names = [f.name for f in find_functions(tokens)]
    several = {name for name, count in Counter(names).items() if count > 1}
    return several | {f.name for f in find_functions(tokens) if tokens.text(f.first) == "template"}


def owning_variables(tokens):
    """Names of variables of the program's classes that have a destructor."""
    owners = {tokens.text(i + 1) for i, token in enumerate(tokens.all) if token.text == "~"}
    found = set()
    for i, token in enumerate(tokens.all):
        if token.text in owners and token.kind == "word":
            behind = i + 1
            while tokens.text(behind) not in ("", ";", "(", ")", "{", "}", ",") and behind < i + 9:
                if tokens.all[behind].kind == "word":
                    found.add(tokens.text(behind))
                behind += 1
    return found


def held_edits(tokens, variables):
    """Edits by which a launch holds objects by their addresses, see emulator/launch.h."""
    edits, owning = [], owning_variables(tokens) if variables else ()
    for token in (tokens.all[i] for i in variables):
        if token.text in owning:
            edits.append(Edit(token.start, token.start, "::emulator::held("))
            edits.append(Edit(token.end, token.end, ")"))
    return edits


def argument_edits(tokens, first, last):
    """Parameters and arguments of a launch's lambda, and the edits for arguments 0 and {1, 2}.

    Only where they stand in the call itself may a pointer, or an object, be made of them. So they
    move there, from between the parentheses `first` and `last`.
    """
    listed = split_arguments(tokens, first, last)
    several = names_of_several(tokens)
    nulls = [is_only_in_call(tokens, begin, end, several) for begin, end in listed]
    held = held_edits(tokens, [i for (i, j), null in zip(listed, nulls) if i == j and not null])
    # Commas of templates, or a pack: the arguments cannot be counted.
    text = tokens.source[tokens.all[first].start : tokens.all[last].end]
    if not any(nulls) or "<" in text or "..." in text:
        return "auto... emulator_args", "::emulator::given(emulator_args)...", held
    parameters, arguments, edits = [], [], []
    for i, (begin, end) in enumerate(listed):
        if i > 0 and (nulls[i] or not parameters):
            edits.append(blank(tokens, begin - 1, begin - 1))
        if nulls[i]:
            arguments.append(text_of(tokens, begin, end))
            edits.append(blank(tokens, begin, end))
        else:
            name = "emulator_arg_%d" % i
            arguments.append("::emulator::given(%s)" % name)
            parameters.append("auto " + name)
    return ", ".join(parameters), ", ".join(arguments), edits + held


def rewrite_launches(tokens):
    """The edits for all launches of a source."""
    edits = []
    for i, token in enumerate(tokens.all):
        # operator<<<T> is a name
        if token.text == "<<<" and tokens.text(i - 1) != "operator":
            edits += launch_edits(tokens, i)
    return edits
