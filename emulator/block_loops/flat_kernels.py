"""Kernels whose blocks may run side by side, as if they were one wide block.

They know their threads by the number in the grid alone, `blockIdx.x * blockDim.x + threadIdx.x`.
include/emulator/loops.h has the compiler refuse the others.
"""

from cuda_source.functions import INDICES, ORDERED

# How a kernel may know its threads for blocks to run side by side: BLOCK * SIZE + THREAD.
BLOCK, SIZE, THREAD = "blockIdx . x", "blockDim . x", "threadIdx . x"
FLAT = tuple(
    tuple(text.split())
    for product in (f"{BLOCK} * {SIZE}", f"{SIZE} * {BLOCK}")
    for start in (product, f"( {product} )")
    for text in (f"{start} + {THREAD}", f"{THREAD} + {start}")
)
# What may stand before that: nothing that takes a part of it for itself.
BEFORE_FLAT = ("=", "(", "[", ",", "{", "return", "<", ">", "<=", ">=", "==", "!=", "&&", "||")


def knows_flat_threads(kernel):
    """Whether a kernel knows its threads by their number in the grid alone, leaves no traces of
    their order, and calls no function of the program: the compiler refuses what is missed here."""
    tokens, function = kernel.tokens, kernel.function
    i, found = function.brace, False
    while i < function.end:
        length = flat_length(tokens, i)
        if length:
            found, i = True, i + length
            continue
        name = tokens.text(i)
        if name in INDICES or name in ORDERED or name in kernel.program.functions:
            return False
        i += 1
    return found


def flat_length(tokens, i):
    """How many tokens from i on are a thread's number in the grid; 0 if none."""
    for wanted in FLAT:
        end = i + len(wanted)
        if wanted == tuple(tokens.text(k) for k in range(i, end)):
            is_whole = tokens.text(i - 1) in BEFORE_FLAT
            return len(wanted) * (is_whole and tokens.text(end) not in ("*", "/", "%"))
    return 0
