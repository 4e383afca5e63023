"""Has the checked build see where a kernel's threads end: by which `return`, or at its last brace.

A thread that returns before a barrier is no fault on today's GPUs. One that goes round a barrier
and then ends is one, also if it accesses no memory on its way.

    if (i >= n) return;        if (i >= n) return ::emulator_kernel_returns();
    }                          ::emulator_kernel_ends();}
"""

from cuda_source.functions import find_functions
from cuda_source.tokens import Edit


def show_ends(tokens):
    """Edits that call the runtime where a thread leaves a kernel."""
    edits = []
    for function in find_functions(tokens):
        if not function.is_kernel or function.end is None:
            continue
        last = tokens.all[function.end].start
        edits.append(Edit(last, last, "::emulator_kernel_ends();"))
        for i in range(function.brace + 1, function.end - 1):
            token = tokens.all[i]
            if token.text == "return" and tokens.text(i + 1) == ";":
                way = "ends" if i + 2 == function.end else "returns"
                edits.append(Edit(token.end, token.end, " ::emulator_kernel_%s()" % way))
    return edits
