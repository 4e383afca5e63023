"""Functions of the C and C++ libraries that nvcc lets no kernel call. It has been asked for each.

Those of mathematics, printf, malloc and their like a GPU has. What is not listed may be called.
"""

import re
from collections import namedtuple

C = (
    "rand srand random drand48 exit abort _Exit fprintf sprintf snprintf fflush fopen strlen "
    "strcmp strcpy strcat strncpy strncmp atoi atof strtol getenv system time qsort toupper"
).split()
# By what the linker's name begins with. nvcc takes what is constexpr in some version of C++ by
# --expt-relaxed-constexpr.
CXX = {
    "std::sort": "_ZSt4sortI",
    "std::swap": "_ZSt4swapI",
    "std::fill": "_ZSt4fillI",
    "std::copy": "_ZSt4copyI",
    "std::reverse": "_ZSt7reverseI",
    "std::accumulate": "_ZSt10accumulateI",
    "std::iota": "_ZSt4iotaI",
    "std::vector": "_ZNK?St6vectorI",
    "std::string": "_ZNK?St7__cxx1112basic_stringI",
}
# The same, where a GPU has a function of that name outside of std.
QUALIFIED = {"std::max": "_ZSt3maxI", "std::min": "_ZSt3minI"}
ALL = {name: re.compile(begin) for name, begin in {**CXX, **QUALIFIED}.items()}

OWN = "write it as a `__device__` function"
LibraryFunction = namedtuple("LibraryFunction", "name space kind is_constexpr hint")


def of_library(name, own, line):
    """What is listed by a name for the linker, if the program has no function of that name.

    `line` is the text of the call's line.
    """
    if name in C:
        return None if name in own else LibraryFunction(name, "host", "library", False, OWN)
    for shown, begin in ALL.items():
        if begin.match(name) and (shown in line or shown not in QUALIFIED):
            of_gpu = "leave `std::` away" if shown in QUALIFIED else OWN
            return LibraryFunction(shown, "host", "library", True, of_gpu)
    return None
