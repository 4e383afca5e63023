"""Makes calls of the assembler instructions that the emulated GPU has; refusals.py has the others.

They are those of tensor cores that have no intrinsic, and what rounds for them:
include/emulator/tensor_cores.h carries them out. An instruction is known by its whole name, and by
what its operands are; where an operand is written otherwise than nvcc wants it, the statement stays
what it is, and is refused.
"""

import ast
import re
from collections import namedtuple

from cuda_source.launches import split_arguments
from cuda_source.tokens import Edit, text_of

#: A call, and how many operands its instruction's groups have: those it writes stand first.
Instruction = namedtuple("Instruction", "call groups")

_PRODUCT = (4, 4, 2, 4)
INSTRUCTIONS = {
    "cvt.rna.tf32.f32": Instruction("to_tf32", (1, 1)),
    "cvt.rn.bf16.f32": Instruction("to_bf16", (1, 1)),
    "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32": Instruction("multiply_tf32", _PRODUCT),
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32": Instruction("multiply_f16", _PRODUCT),
    "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32": Instruction("multiply_bf16", _PRODUCT),
}
ASSEMBLER = ("asm", "__asm", "__asm__")
VOLATILE = ("volatile", "__volatile__", "__volatile")
_ONE = re.compile(r"\s*(?P<name>[\w.]+)\s+(?P<operands>[^;]*);\s*\Z")


def translated(tokens):
    """The edits that make calls of the instructions there are."""
    edits = []
    for i, token in enumerate(tokens.all):
        if token.text not in ASSEMBLER:
            continue
        opening = i + 1 + (tokens.text(i + 1) in VOLATILE)
        closing = tokens.match_forward(opening) if tokens.text(opening) == "(" else None
        call = closing and call_for(tokens, opening, closing)
        if call:
            end = tokens.all[closing].end
            lines = tokens.source.count("\n", token.start, end) - call.count("\n")
            edits.append(Edit(token.start, end, call + "\n" * lines))
    return edits


def call_for(tokens, opening, closing):
    """The call for what stands in the parentheses of an assembler statement; None if there is
    none."""
    places = [i for i in range(opening + 1, closing) if tokens.all[i].kind == "text"]
    end = opening + 1
    while end in places:
        end += 1
    text = "".join(ast.literal_eval(tokens.text(i)) for i in range(opening + 1, end))
    one = _ONE.match(text)
    instruction = one and INSTRUCTIONS.get(one["name"])
    numbers = instruction and numbers_of(one["operands"], instruction.groups)
    operands = numbers and expressions(tokens, end, closing)
    if not operands or max(numbers) >= len(operands):
        return None
    given = ", ".join(operands[number] for number in numbers)
    return "::emulator::tensor_cores::%s(%s)" % (instruction.call, given)


def numbers_of(text, groups):
    """The numbers of `{%0, %1}, {%2}` in their order, if they come in groups of these sizes."""
    words = re.sub(r"\s", "", text)
    one = r"%\d+"
    sizes = [one if n == 1 else r"\{%s\}" % ",".join([one] * n) for n in groups]
    is_whole = re.fullmatch(",".join(sizes), words)
    return [int(n) for n in re.findall(r"\d+", words)] if is_whole else []


def expressions(tokens, first, closing):
    """The operands of an assembler statement: those it writes, then those it reads."""
    found, begin, colons = [], first, 0
    for i in range(first, closing + 1):
        text = tokens.text(i)
        if i == closing or text in (":", "::"):
            found += operands_of(tokens, begin, i) if colons in (1, 2) else []
            colons, begin = colons + len(text), i + 1
    return found


def operands_of(tokens, first, last):
    """The expressions of `"=f"(x), "r"(y)`, which end before token `last`, in parentheses."""
    if first == last:
        return []
    places = split_arguments(tokens, first - 1, last)
    return [text_of(tokens, begin + 1, end) for begin, end in places]
