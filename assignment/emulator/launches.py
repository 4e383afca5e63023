"""Launches, `kernel<<<grid, block>>>(arguments)`, become calls, see emulator/launch.h."""

import re

from cuda_tokens import CLOSING, COMMENT, OPENING, Edit, SourceError, blank

# Words before a parenthesis that make it no call.
NOT_CALLED = ("if", "while", "for", "switch", "return", "else", "do", "case", "throw", "sizeof")


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
    last = find_arguments_end(tokens, launch, close + 3, name)
    parameters, arguments, edits = null_edits(tokens, close + 3, last)
    opening = "::emulator::emulator_kernel(EMULATOR_NAME(%s), [=](%s) { " % (name, parameters)
    block = whole_block(name, parameters, arguments)
    return edits + [
        Edit(begin, begin, opening),
        Edit(position, position + 3, "(%s); }%s)(" % (arguments, block)),
        Edit(tokens.all[close].start, tokens.all[close + 2].end, ")"),
    ]


def whole_block(name, parameters, arguments):
    """A lambda more: the same call of the version that runs a whole block, if there is one."""
    if "(" in name or "[" in name:
        return ""
    parameters = ", ".join(filter(None, ["auto emulator_block", parameters]))
    call = "%s(%s)" % (name, ", ".join(filter(None, ["emulator_block", arguments])))
    return ", [=](%s) -> decltype(%s) { return %s; }" % (parameters, call, call)


def find_arguments_end(tokens, launch, index, name):
    """Index of the `)` of a launch whose arguments begin at `index`, or None in a macro."""
    if not tokens.together(index, launch) and tokens.all[launch].directive is not None:
        return None  # a macro that ends in >>>; the arguments stand where it is used
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


def null_edits(tokens, first, last):
    """Parameters and arguments of a launch's lambda, and the edits for arguments 0 and NULL.

    Only where they stand in the call itself may a pointer be made of them. So they move there,
    from between the parentheses `first` and `last`.
    """
    listed = split_arguments(tokens, first, last) if last is not None else []
    nulls = [begin == end and tokens.text(begin) in ("0", "NULL") for begin, end in listed]
    # Commas of templates, or a pack: the arguments cannot be counted.
    text = "" if last is None else tokens.source[tokens.all[first].start : tokens.all[last].end]
    if not any(nulls) or "<" in text or "..." in text:
        return "auto... emulator_args", "emulator_args...", []
    parameters, arguments, edits = [], [], []
    for i, (begin, end) in enumerate(listed):
        if i > 0 and (nulls[i] or not parameters):
            edits.append(blank(tokens, begin - 1, begin - 1))
        if nulls[i]:
            arguments.append(tokens.text(begin))
            edits.append(blank(tokens, begin, end))
        else:
            arguments.append("emulator_arg_%d" % i)
            parameters.append("auto " + arguments[-1])
    return ", ".join(parameters), ", ".join(arguments), edits


def launch_macros(tokens):
    """Names of the macros that launch."""
    names, launching = {}, set()
    for i, token in enumerate(tokens.all):
        if tokens.is_defined(i):
            names[token.directive] = token.text
        elif token.text == "<<<" and token.directive is not None:
            launching.add(names.get(token.directive))
    return launching


def rewrite_macro_arguments(tokens):
    """NULL, handed to a macro that launches, becomes nullptr: a template takes it for a number."""
    edits, macros = [], launch_macros(tokens)
    for i, token in enumerate(tokens.all):
        if token.text not in macros or tokens.is_defined(i) or tokens.text(i + 1) != "(":
            continue
        last = tokens.match_forward(i + 1)
        for begin, end in split_arguments(tokens, i + 1, last) if last is not None else []:
            if begin == end and tokens.text(begin) == "NULL":
                edits.append(Edit(tokens.all[begin].start, tokens.all[begin].end, "nullptr"))
    return edits


def rewrite_launches(tokens):
    """The edits for all launches of a source."""
    edits = []
    for i, token in enumerate(tokens.all):
        # operator<<<T> is a name
        if token.text == "<<<" and tokens.text(i - 1) != "operator":
            edits += launch_edits(tokens, i)
    return edits
