"""What the emulated GPU does not have is refused by the compiler, in words and with its line.

Each use gets a pragma before it, which counts only where the preprocessor leaves the code in;
so a program may keep a part for real GPUs under #ifndef __CUDA_EMULATOR__.
"""

import re

from cuda_tokens import Edit

# Names, with what they stand for.
NAMES = (
    (r"cudaTextureObject_t|cudaCreateTextureObject|cudaBindTexture\w*", "textures"),
    (r"cudaSurfaceObject_t|cudaCreateSurfaceObject", "surfaces"),
    (r"cudaMallocArray|cudaMalloc3DArray|cudaArray_t", "arrays for textures"),
    (r"cudaLaunchCooperativeKernel", "barrier of a whole grid"),
    (r"cudaLaunchKernel|cudaLaunchKernelEx", "launches but kernel<<<...>>>()"),
    (r"__cluster_dims__|this_cluster", "clusters of blocks"),
    (r"cudaStreamBeginCapture|cudaGraphCreate|cudaGraphLaunch", "graphs"),
)
# Functions: only where a parenthesis or a `<` follows.
FUNCTIONS = (
    (r"texture|tex(1D|2D|3D|Cubemap)(fetch|Layered|Lod|Grad|LayeredLod|gather)?", "textures"),
    (r"surf(1D|2D|3D|Cubemap)(Layered)?(read|write)", "surfaces"),
)
ASSEMBLER = ("asm", "__asm", "__asm__")
AFTER_ASSEMBLER = ("(", "volatile", "__volatile__", "__volatile")


def refusal(tokens, index, what):
    """The edit that makes a token an error."""
    start = tokens.all[index].start
    said = "the emulated GPU has no %s (%s); hint: DEVICE=cuda" % (what, tokens.text(index))
    return Edit(start, start, ' _Pragma("GCC error \\"%s\\"") ' % said)


def missing(tokens, index):
    """What a token asks for that there is not, or None."""
    text, following = tokens.text(index), tokens.text(index + 1)
    if tokens.all[index].kind != "word" or tokens.is_defined(index):
        return None
    for names, what in NAMES + (FUNCTIONS if following in ("(", "<") else ()):
        if re.fullmatch(names, text):
            return what
    return None


def refuse_missing(tokens):
    """The edits for all names of what there is not."""
    found = ((i, missing(tokens, i)) for i in range(len(tokens.all)))
    return [refusal(tokens, i, what) for i, what in found if what is not None]


def device_bodies(tokens):
    """Index pairs of the braces of all functions that run on the device alone."""
    bodies = []
    for i, token in enumerate(tokens.all):
        if token.text not in ("__global__", "__device__") or token.directive is not None:
            continue
        brace, words = i, {tokens.text(i - 1)}
        while brace < len(tokens.all) and tokens.text(brace) not in ("{", ";", "="):
            words.add(tokens.text(brace))
            brace = tokens.match_forward(brace) if tokens.text(brace) in ("(", "[") else brace
            if brace is None:
                break
            brace += 1
        if brace is not None and tokens.text(brace) == "{" and "__host__" not in words:
            bodies.append((brace, tokens.match_forward(brace) or brace))
    return bodies


def refuse_in_kernels(tokens):
    """The edits for launches and assembler in functions of the device; host code may have both."""
    edits, bodies = [], device_bodies(tokens)
    for i, token in enumerate(tokens.all):
        in_kernel = any(first < i < last for first, last in bodies)
        if token.text == "<<<" and in_kernel:
            edits.append(refusal(tokens, i, "launches in kernels"))
        elif token.text in ASSEMBLER and (in_kernel or token.directive is not None):
            if tokens.text(i + 1) in AFTER_ASSEMBLER:
                edits.append(refusal(tokens, i, "PTX"))
    return edits
