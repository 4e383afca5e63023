"""Turns preprocessed CUDA C++ into plain C++ for the emulated GPU. compiler.py runs it.

Macros do most of it (include/emulator/language.h). What they cannot do is done here:

- a launch, `kernel<<<grid, block>>>(arguments)`, becomes a call, see emulator/launch.h, and each
  kernel begins by launching itself where the host calls it, see cuda_source/kernel_starts.py;
- a `__shared__` variable becomes a reference into the block's memory, see emulator/shared.h;
  a static one gets a check that it fits into the 48 KB of a block;
- `__launch_bounds__` become a check, see cuda_source/kernel_facts.py;
- assembler for tensor cores becomes calls, before anything else, see cuda_source/assembler.py;
- what the emulated GPU does not have is marked for the compiler to refuse, see
  cuda_source/refusals.py;
- loops in which a thread may wait for another let the others run, see
  cuda_source/waiting_loops.py;
- kernels get a second version that runs a whole block as loops, see block_loops/loops.py;
- for the checked build instead, the names of a kernel's parameters stand behind it, variables of
  the host are told, see instrument/host_variables.py, copied vectors are shown to the compiler, see
  instrument/vector_copies.py, and loops that only read are checked once, see
  instrument/quick_loops.py.

Text is inserted, and never moved to another line (but for the name of a launch, which goes behind
its `>>>`), so the compiler's errors name the lines of the original file.
"""

from block_loops.loops import add_loops
from block_loops.program import Program
from cuda_source.assembler import translated
from cuda_source.direct_calls import refuse_direct_calls
from cuda_source.functions import CASTS
from cuda_source.kernel_facts import tell_facts
from cuda_source.launches import rewrite_launches
from cuda_source.refusals import refuse_in_kernels, refuse_missing
from cuda_source.shared_variables import rewrite_shared
from cuda_source.statements import Parser
from cuda_source.tokens import (
    OPENING,
    SourceError,
    Tokens,
    apply_edits,
    quoted,
    without_prelude,
)
from cuda_source.waiting_loops import let_others_run
from instrument.host_variables import tell_host_variables
from instrument.parameter_names import name_parameters
from instrument.quick_loops import quick_loops
from instrument.vector_copies import show_copies

PASSES = (
    refuse_direct_calls,
    tell_facts,
    rewrite_launches,
    rewrite_shared,
    refuse_missing,
    refuse_in_kernels,
    let_others_run,
)
# How kernels run: each thread on its own, as loops where that can be, or in the checked build.
THREADS, LOOPS, CHECKED = "threads", "loops", "checked"
# Brackets in one another: passes call themselves for what is in them. clang takes 256.
_DEEPEST = 500

# `threadIdx.x < n` compares an unsigned with an int in nearly every kernel; nvcc says nothing.
PROLOGUE = '#pragma GCC diagnostic ignored "-Wsign-compare"\n'


def rewrite(source, path, mode=THREADS, refused=None):
    """Plain C++ for preprocessed CUDA C++, and a list of (kernel, how it runs, reason); see
    `rewritten`."""
    text, program = rewritten(source, path, mode, refused)
    return text, program.said if program else []


def rewritten(source, path, mode, refused=None, pinned=None):
    """Plain C++ for preprocessed CUDA C++, and the program, or None.

    `refused` has reasons, by the numbers of functions, for which the compiler did not take what
    was made of them, `pinned` names of variables whose addresses it knows of. Raises SourceError.
    """
    source = without_prelude(source, path)
    tokens = Tokens(source, path)
    calls = translated(tokens)
    if calls:
        source = apply_edits(source, calls)
        tokens = Tokens(source, path)
    require_shallow(tokens)
    edits = [edit for rewrite_pass in PASSES for edit in rewrite_pass(tokens)]
    if not tokens.is_balanced or has_open_cast(tokens):
        mode = THREADS  # the compiler will say what is missing
    program = None
    if mode == CHECKED:
        program = Program(tokens, refused, pinned)
        edits += name_parameters(tokens) + tell_host_variables(tokens) + show_copies(tokens)
        edits += quick_loops(program, edits)
    elif mode == LOOPS:
        try:
            program = Program(tokens, refused, pinned)
            edits += add_loops(program, edits)
        except RecursionError:  # a chain of very many else-ifs: its threads run one by one
            program = None
    head = "%s# 1 %s\n" % (PROLOGUE, quoted(path))
    return head + apply_edits(source, edits), program


def require_shallow(tokens):
    """Raises SourceError at the first bracket that is too deep in others."""
    depth = 0
    for token in tokens.all:
        if token.kind == "sign" and token.text in OPENING:
            depth += 1
            if depth > _DEEPEST:
                raise SourceError(token.start, "brackets in more than %d others" % _DEEPEST)
        elif token.kind == "sign" and token.text in ")]}":
            depth = max(0, depth - 1)


def has_open_cast(tokens):
    """Whether it is not seen where the type in a `static_cast<` ends, by which passes go on."""
    parser = Parser(tokens)
    return any(
        token.text in CASTS and parser.template_forward(i + 1) in (None, i + 1)
        for i, token in enumerate(tokens.all)
    )


def place_of(source, path, error):
    """The file and the line of a SourceError."""
    return error.place or Tokens(without_prelude(source, path), path).place(error.position)
