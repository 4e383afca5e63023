"""Turns CUDA C++ into plain C++ for the emulated GPU.

    python3 rewrite.py src/gpu_op.cu -o gpu_op.cu.cc

Macros do most of it (include/emulator/language.h). What they cannot do is done here:

- a launch, `kernel<<<grid, block>>>(arguments)`, becomes a call, see emulator/launch.h;
- a `__shared__` variable becomes a reference into the block's memory, see emulator/shared.h;
  a static one gets a check that it fits into the 48 KB of a block;
- what the emulated GPU does not have is marked for the compiler to refuse, see refusals.py;
- for the checked build (--checked), the names of a kernel's parameters stand behind it, copied
  vectors are shown to the compiler, see vector_copies.py, and loops that only read are checked
  once, see quick_loops.py.

Headers of the source's own folder, `#include "x.cuh"`, are treated alike and written next to the
output, where the compiler finds them first; OUTPUT.d tells make which ones.

Text is inserted, and never moved to another line, so the compiler's errors name the lines of
the original file. What is wrong with the source itself is reported as file:line: error: ...
with exit code 1.
"""

import argparse
import os
import re
import sys
import tempfile

from cuda_tokens import SourceError, Tokens
from launches import rewrite_launches, rewrite_macro_arguments
from loops import add_loops
from parameter_names import name_parameters, prefix_of
from program import Program
from quick_loops import quick_loops
from refusals import refuse_in_kernels, refuse_missing
from shared_variables import rewrite_shared
from vector_copies import show_copies

PASSES = (
    rewrite_launches,
    rewrite_macro_arguments,
    rewrite_shared,
    refuse_missing,
    refuse_in_kernels,
)

INCLUDE = re.compile(r'^[^\S\n]*#[^\S\n]*include[^\S\n]*"([^"\n]+)"', re.MULTILINE)

# `threadIdx.x < n` compares an unsigned with an int in nearly every kernel; nvcc says nothing.
PROLOGUE = '#pragma GCC diagnostic ignored "-Wsign-compare"\n'


def apply_edits(source, edits):
    """The source with all edits made."""
    parts, position = [], 0
    for edit in sorted(edits):
        parts += [source[position : edit.start], edit.text]
        position = edit.end
    return "".join(parts) + source[position:]


def local_headers(source):
    """The names in `#include "name"` that lead to no other folder but those below."""
    return [name for name in INCLUDE.findall(source) if not re.match(r"/|(.*/)?[.][.]/", name)]


def rewrite(source, path, program=None, named=None):
    """Plain C++ for a CUDA source; its compiler errors will name `path`.

    With a Program, whose `sources` have this one, kernels become loops where they can. With
    `named` too, a prefix (or ""), it is for the checked build instead: the names of the kernels'
    parameters are kept, and loops that only read are checked once.
    """
    tokens = program.sources[path] if program else Tokens(source)
    edits = [edit for rewrite_pass in PASSES for edit in rewrite_pass(tokens)]
    if named is not None:
        edits += name_parameters(tokens, named) + show_copies(tokens)
        edits += quick_loops(program, path, edits) if program else []
    elif program:
        edits += add_loops(program, edits, path)
    quoted = path.replace("\\", "\\\\").replace('"', '\\"')
    return PROLOGUE + '#line 1 "%s"\n' % quoted + apply_edits(source, edits)


def read(path):
    """Text of a file; bytes that are no UTF-8 survive."""
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
        return file.read()


def write(path, text):
    """Writes a file, under its name only once it is whole, so that make never sees half of it."""
    folder = os.path.dirname(path) or "."
    os.makedirs(folder, exist_ok=True)
    with tempfile.NamedTemporaryFile(
        "w", dir=folder, delete=False, encoding="utf-8", errors="surrogateescape", newline=""
    ) as file:
        file.write(text)
    os.chmod(file.name, 0o644)
    os.replace(file.name, path)


def sources_of(path, found):
    """Adds the tokens of a file and of its local headers to `found`, by their paths."""
    source = read(path)
    found[path] = Tokens(source)
    for name in local_headers(source):
        header = os.path.normpath(os.path.join(os.path.dirname(path), name))
        if os.path.isfile(header) and header not in found:
            sources_of(header, found)
    return found


def rewrite_file(path, output, done, program=None, checked=False):
    """Rewrites a file and, into the same folder, its local headers; `done` gets their paths."""
    source = read(path)
    try:
        prefix = prefix_of(path) if done else ""  # a header of the source
        text = rewrite(source, path, program, prefix if checked else None)
    except SourceError as error:
        line = source.count("\n", 0, error.position) + 1
        raise SystemExit("%s:%d: error: %s" % (path, line, error)) from None
    done.append(path)
    for name in local_headers(source):
        header = os.path.normpath(os.path.join(os.path.dirname(path), name))
        if os.path.isfile(header) and header not in done:
            written = os.path.join(os.path.dirname(output), name)
            rewrite_file(header, written, done, program, checked)
    # A header that is new to make would be built again by all that include it.
    if not os.path.exists(output) or path == done[0] or read(output) != text:
        write(output, text)


def explain(program):
    """Prints how each kernel runs."""
    for kernel, way, reason in program.said:
        print("%-36s %s%s" % (kernel, way, ": " + reason if reason else ""))


def main():
    """Rewrites the file that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", help="CUDA source, as src/gpu_op.cu")
    parser.add_argument("-o", dest="output", help="the C++ file to write")
    parser.add_argument("--no-loops", action="store_true", help="call each thread on its own")
    parser.add_argument(
        "--checked", action="store_true", help="name kernels' parameters; --no-loops as well"
    )
    parser.add_argument("--explain", action="store_true", help="only say how each kernel runs")
    arguments = parser.parse_args()
    if not arguments.output and not arguments.explain:
        parser.error("-o is missing")
    done = []
    try:
        plain = arguments.no_loops and not arguments.checked
        program = None if plain else Program(sources_of(arguments.source, {}))
        if arguments.explain:
            for path in program.sources:
                rewrite(read(path), path, program)
            explain(program)
            return 0
        rewrite_file(arguments.source, arguments.output, done, program, arguments.checked)
    except OSError as error:
        print("%s: error: %s" % (error.filename, error.strerror), file=sys.stderr)
        return 1
    rules = ["%s: %s" % (arguments.output, " ".join(done))] + [path + ":" for path in done[1:]]
    write(arguments.output + ".d", "\n".join(rules) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
