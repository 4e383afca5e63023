"""Pieces of C++ that the kernels of both back ends are made of."""

import re

from dlsys.dtypes import C_NAMES


def signature(name, stream="void*"):
    """How every kernel is called: operands, whole numbers, numbers, stream; 0 if all is well."""
    return (
        'extern "C" int %s(char* const* data, const int64_t* n, const double* number, %s)'
        % (name, stream)
    )  # fmt: skip


def pointers(dtypes, first=0):
    """Arguments: the operands as pointers of their types."""
    return ", ".join(
        "reinterpret_cast<%s%s*>(data[%d])" % ("const " if i else "", C_NAMES[dtype], i)
        for i, dtype in enumerate(dtypes)
        if i >= first
    )


def converted(value, of, to):
    """A C expression of one dtype in another."""
    if of == to:
        return value
    if of.kind not in "biuf" or of.itemsize == 2:
        value = "as<float>(%s)" % value
    if to.kind not in "biuf" or to.itemsize == 2:
        value = "as<float>(%s)" % value
    return "as<%s>(%s)" % (C_NAMES[to], value)


def indented(lines):
    """Lines as text, two spaces in; directives at the margin."""
    return "".join("%s%s\n" % ("" if line.startswith("#") else "  ", line) for line in lines)


def named(code, names):
    """A statement's code with the back end's words for @i0@, @v3@, ..."""
    return re.sub(r"@([iv]\d+)@", lambda match: names[match[1]], code)


#: The class of numbers.h that reduces in a way.
WAYS = {"sum": "Sum", "prod": "Product", "max": "Largest", "min": "Smallest"}
