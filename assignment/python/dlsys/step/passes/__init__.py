"""What is done to a step's graph before it runs. Each pass keeps every bit of every value.

A pass is a function of a Graph that changes it and returns a Report. Its docstring shows a graph
before and after. They may run in any order, and more than once.
"""

from .algebra import simplify
from .constants import fold_constants
from .dead import drop_dead
from .masks import mask_by_results
from .subexpressions import merge_equal
from .transposes import into_products

#: The passes of a step and their order, in which one finds what another made.
PASSES = (
    simplify, into_products, fold_constants, merge_equal, simplify, mask_by_results, drop_dead,
)  # fmt: skip
