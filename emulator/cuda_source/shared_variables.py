"""`__shared__` variables become references into the block's memory, see emulator/shared.h."""

from cuda_source.tokens import OPENING, Edit, blank, text_of

STATIC_SHARED_BYTES = 48 * 1024

# What has brackets in a declaration before its name.
ATTRIBUTES = ("__align__", "alignas", "__attribute__")


def is_file_scope(tokens, index):
    """Whether a token is in no braces but those of namespaces and extern "C"."""
    brace = tokens.around[index]
    while brace is not None:
        if not opens_namespace(tokens, brace):
            return False
        brace = tokens.around[brace]
    return True


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
    while tokens.text(first - 1) not in ("", ";", "{", "}", ":"):
        before = first - 1
        if tokens.text(before) == ")":  # alignas(16) __shared__ ...
            before = (tokens.match_backward(before) or 0) - 1
            if tokens.text(before) not in ATTRIBUTES:
                break
        first = before
    while tokens.text(last) not in ("", ";"):
        last = tokens.match_forward(last) if tokens.text(last) in OPENING else last
        if last is None:
            return first, None
        last += 1
    return first, last if tokens.text(last) else None


def find_declarators(tokens, first, last):
    """The variables of a declaration: for each the index of its name and of the token behind."""
    found, name, templates, i = [], None, 0, first
    while i <= last:
        text = tokens.text(i)
        if text in (",", ";") and templates == 0:
            if name is not None:
                found.append((name, i))
            name = None
        elif text in ATTRIBUTES:  # before a name, or behind it
            i = tokens.match_forward(i + 1) or i
        elif text in OPENING:
            i = tokens.match_forward(i) or i
        elif text in ("<", ">"):
            templates += 1 if text == "<" else -1
        elif tokens.all[i].kind == "word" and templates == 0:
            name = i
        i += 1
    return found


def specifier_edits(tokens, first, last):
    """Takes away what a reference may not have, such as alignment."""
    edits, i = [], first
    while i < last:
        end = i
        if tokens.text(i) in ATTRIBUTES:
            end = tokens.match_forward(i + 1) or i
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
    value = " = EMULATOR_DYNAMIC_SHARED" if is_dynamic else " = EMULATOR_SHARED(%s)"
    edits = specifier_edits(tokens, first, last)
    if is_file_scope(tokens, first):
        # Each CPU thread's reference leads to its own memory, for all blocks that it runs.
        value = value.replace("SHARED(", "SHARED_BY_ALL(")
        start = tokens.all[first].start
        edits.append(Edit(start, start, "static thread_local "))
    for name, behind in declarators:
        token, end = tokens.all[name], tokens.all[behind].start
        reference = "(&%s)" if tokens.text(name + 1) == "[" else "&%s"
        edits.append(Edit(token.start, token.end, reference % token.text))
        edits.append(Edit(end, end, value if is_dynamic else value % token.text))
    if not is_dynamic:
        edits.append(size_check(tokens, [name for name, _ in declarators], last))
    return edits


def size_check(tokens, names, last):
    """A check that static shared variables have a size, and fit into a block's memory."""
    end = tokens.all[last].end
    size = " + ".join("sizeof(%s)" % tokens.text(name) for name in names)
    message = "a block has %d KB of static shared memory; hint: use less, or dynamic shared memory"
    message %= STATIC_SHARED_BYTES // 1024
    checks = [("::emulator::is_size((%s))" % e, "") for e in extents(tokens, names)]
    checks.append(("%s <= %d" % (size, STATIC_SHARED_BYTES), message))
    return Edit(end, end, "".join(' static_assert(%s, "%s");' % check for check in checks))


def extents(tokens, names):
    """The texts in the [] behind some names. g++ takes what is no constant there, too."""
    found = []
    for name in names:
        i = name + 1
        while tokens.text(i) == "[" and tokens.match_forward(i):
            close = tokens.match_forward(i)
            found.append(text_of(tokens, i + 1, close - 1))
            i = close + 1
    return [extent for extent in found if extent and "#" not in extent]  # no line marker


def rewrite_shared(tokens):
    """The edits for all shared variables of a source."""
    edits = []
    for i, token in enumerate(tokens.all):
        if token.text == "__shared__":
            edits += shared_edits(tokens, i)
    return edits
