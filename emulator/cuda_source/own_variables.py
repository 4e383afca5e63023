"""Each file has variables of the device of its own, as nvcc has it without -rdc.

So two files may each have a `__constant__ float table[9];`: they become static.
"""

from cuda_source.host_and_device import function_from
from cuda_source.shared_variables import find_declaration, is_file_scope
from cuda_source.tokens import Edit

WORDS = ("__device__", "__constant__", "__managed__")
# With one of these a variable is no other file's, or expressly is.
NOT_OWN = {"static", "extern", "inline", "const", "constexpr", "template", "using", "typedef"}
# nvcc does not say that one is not used.
OWN = " static __attribute__((unused))"


def own_variables(tokens):
    """The edits that make them so; behind a word, since a kernel's second version may stand before
    the declaration."""
    edits, done = [], set()
    for i, token in enumerate(tokens.all):
        if token.text not in WORDS or not is_file_scope(tokens, i):
            continue
        first, last = find_declaration(tokens, i)
        if last is None or last in done or function_from(tokens, i) is not None:
            continue
        words = {tokens.text(k) for k in range(first, last)}
        if not words & NOT_OWN and tokens.text(i - 1) not in ("*", "&", ">"):
            done.add(last)
            edits.append(Edit(token.end, token.end, OWN))
    return edits
