"""What the emulated GPU does not have is refused by the compiler, in words and with its line.

Each use gets a pragma before it, which counts only where the preprocessor leaves the code in;
so a program may keep a part for real GPUs under #ifndef __CUDA_EMULATOR__.
"""

import re

from cuda_source.assembler import ASSEMBLER, VOLATILE
from cuda_source.kernel_starts import find_heads, template_end
from cuda_source.lockstep import warn_of_lockstep
from cuda_source.tokens import Edit

# Names, with what they stand for and what to use instead.
BY_INDEX = "read the array by an index, which min and max keep inside of it"
ONE_KERNEL = "launch by kernel<<<grid, block, shared, stream>>>(arguments)"
NAMES = (
    (r"cudaTextureObject_t|cudaCreateTextureObject|cuda(Unb|B)indTexture\w*|textureReference"
     r"|cudaTextureDesc|cudaResourceDesc|cudaCreateChannelDesc\w*|cudaChannelFormat\w+"
     r"|cuTex\w+|CUtex\w+", "textures", BY_INDEX),
    (r"cudaSurfaceObject_t|cudaCreateSurfaceObject|surfaceReference|cuSurf\w+", "surfaces",
     BY_INDEX),
    (r"cudaMallocArray|cudaMalloc3DArray|cudaArray(_t)?|cudaMipmappedArray_t|cuArray\w+"
     r"|cudaMemcpy(2D)?(To|From)Array(Async)?", "arrays for textures",
     "cudaMalloc, cudaMallocPitch or cudaMalloc3D"),
    (r"cudaLaunchCooperativeKernel\w*", "barrier of a whole grid",
     "end the kernel where the grid waits, and launch a second one"),
    (r"cudaLaunchKernelExC?|cudaLaunchConfig_t|cudaLaunchAttribute\w*", "launches with attributes",
     ONE_KERNEL),
    (r"cudaConfigureCall|cudaSetupArgument|cudaLaunch", "launches in three steps", ONE_KERNEL),
    (r"cuModule[A-Z]\w+|cuLink[A-Z]\w+|cuLibrary[A-Z]\w+|cuFunc[A-Z]\w+|cuParamSet\w+"
     r"|cuLaunch(Kernel\w*|Grid\w*|CooperativeKernel)?|cuOccupancy\w+", "modules of PTX or cubin",
     "compile the kernel with the program, and " + ONE_KERNEL),
    (r"__cluster_dims__|this_cluster|cluster_group|cudaOccupancyMaxActiveClusters"
     r"|cudaOccupancyMaxPotentialClusterSize", "clusters of blocks", "let each block work alone"),
    (r"cudaGraphics\w+|cudaGL[A-Z]\w+|cuGraphics\w+", "pictures shared with OpenGL and its like",
     "copy the result to the host and draw it there"),
    (r"cuGraph\w+|cuStream(Begin|End)Capture\w*|cuStreamIsCapturing", "graphs of the driver",
     "cudaGraph and its like, which the runtime has"),
    (r"cudaGraph(SetConditional|\w*Conditional\w*|\w+Semaphore\w*|\w+UserObject|AddNode"
     r"|KernelNode\w*Attribute\w*|ExecNodeSetParams|InstantiateWithParams|InstantiateParams"
     r"|DeviceNode_t|KernelNodeSetParam|ExecChildGraphNodeSetParams|NodeSetParams|\w*Symbol)",
     "such nodes of graphs", "cudaGraphAddKernelNode and its like, or capture a stream"),
    (r"cudaIpc\w+|cuIpc\w+", "memory shared with other processes",
     "work in one process, with threads"),
    (r"cudaStream(Set|Get)Attribute|cudaStreamAttr\w+|cudaAccessPolicyWindow|cudaAccessProperty\w+",
     "attributes of streams", "leave them out; results are the same"),
    (r"cuda(Import)?External\w+|cudaDestroyExternal\w+", "memory of other libraries", "cudaMalloc"),
    (r"cuMem(AddressReserve|AddressFree|Create|Map|Unmap|SetAccess|Release)\w*",
     "reserved addresses", "cuMemAlloc"),
    (r"cublas(I[cz]a|[CZ](gem|ger|her|syr|sym|trs|trm|axp|dot|scal|copy|swap|rot|gea|dgm|tp)"
     r"|Scn|Sca|Dzn|Dza|Cs|Zd)\w+", "complex numbers in cuBLAS", "write the product as a kernel"),
    (r"cublasXt\w+", "cuBLAS over several devices", "the functions without Xt"),
    (r"cublas[SDCZ](getr[fsi]|matinv|gels|geqrf|trsmBatched|tpttr|trttp)\w*", "solvers in cuBLAS",
     "write the solver as a kernel, or on the host"),
)  # fmt: skip
# Functions: only where a parenthesis or a `<` follows.
FUNCTIONS = (
    (r"texture|tex(1D|2D|3D|Cubemap)(fetch|Layered|Lod|Grad|LayeredLod|gather)?", "textures",
     BY_INDEX),
    (r"surf(1D|2D|3D|Cubemap)(Layered)?(read|write)", "surfaces", BY_INDEX),
    (r"__shfl(_up|_down|_xor)?|__any|__all|__ballot",
     "functions of a warp without a mask, as no GPU since 2017,",
     "%s_sync, with 0xffffffff or the lanes that take part as its first argument"),
)  # fmt: skip
# Words after which a name is used, not declared.
BEFORE_CALLS = frozenset(
    "return else do case throw co_return co_yield co_await and or not"
    " static extern const constexpr volatile typename using".split()
)
BUILT_IN = ("threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize")
ADDRESS = "the address of a built-in variable (%s) cannot be taken; hint: take that of a copy"
AFTER_ASSEMBLER = ("(", *VOLATILE)


def refusal(tokens, index, what, instead):
    """The edit that makes a token an error."""
    start, name = tokens.all[index].start, tokens.text(index)
    hint = instead.replace("%s", name)
    said = "the emulated GPU has no %s (%s); hint: %s, or DEVICE=cuda" % (what, name, hint)
    return Edit(start, start, ' _Pragma("GCC error \\"%s\\"") ' % said)


def own_names(tokens):
    """Names that the program declares itself: another word stands before them."""
    own = set()
    for i, token in enumerate(tokens.all):
        if token.kind != "word" or tokens.text(i + 1) not in ("(", "<", "{", ":", ";"):
            continue
        before = tokens.text(i - 1)
        if before.isidentifier() and before not in BEFORE_CALLS:
            own.add(token.text)
    return own


def known_as(text, names):
    """What a word asks for that there is not, and what to use instead; or None."""
    return next((row[1:] for row in names if re.fullmatch(row[0], text)), None)


def refuse_missing(tokens):
    """The edits for all names of what there is not, and for kernels behind a void pointer."""
    words = {token.text for token in tokens.all if token.kind == "word"} - own_names(tokens)
    names = {word: known_as(word, NAMES) for word in words}
    functions = {word: known_as(word, FUNCTIONS) for word in words}
    edits = []
    for i, token in enumerate(tokens.all):
        if token.text not in words or tokens.text(i - 1) in (".", "->", "::"):
            continue
        asked = names[token.text]
        if asked is None and tokens.text(i + 1) in ("(", "<"):
            asked = functions[token.text]
        if asked is not None:
            edits.append(refusal(tokens, i, *asked))
    return edits + kernels_of_launches(tokens) + kernels_of_nodes(tokens)


def device_bodies(tokens):
    """Index pairs of the braces of all functions that run on the device alone."""
    bodies = []
    for i, token in enumerate(tokens.all):
        if token.text not in ("__global__", "__device__"):
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
        if token.text != "<<<" and token.text not in ASSEMBLER:
            continue
        in_kernel = any(first < i < last for first, last in bodies)
        if token.text == "<<<" and in_kernel:
            instead = "launch from the host, or loop in the kernel"
            edits.append(refusal(tokens, i, "launches in kernels", instead))
        elif token.text in ASSEMBLER and in_kernel:
            if tokens.text(i + 1) in AFTER_ASSEMBLER:
                edits.append(refusal(tokens, i, "PTX", "write it in C++, or as an intrinsic"))
    return edits + refuse_addresses(tokens, bodies) + warn_of_lockstep(tokens, bodies)


def refuse_addresses(tokens, bodies):
    """The edits for `&threadIdx` and its like in functions of the device, as nvcc refuses them."""
    edits = []
    for i, token in enumerate(tokens.all):
        if token.text not in BUILT_IN or not is_address_of(tokens, i - 1):
            continue
        declared = any(is_declared(tokens, k, token.text) for k in range(len(tokens.all)))
        if not declared and any(first < i < last for first, last in bodies):
            start, said = tokens.all[i - 1].start, ADDRESS % token.text
            edits.append(Edit(start, start, ' _Pragma("GCC error \\"%s\\"") ' % said))
    return edits


def is_address_of(tokens, i):
    """Whether a token is surely the & that takes an address, and no operator of two values."""
    before = tokens.text(i - 1)
    if tokens.text(i) != "&" or before not in ("(", ",", "=", "{", "[", "?", ";", "return", ")"):
        return False
    if before != ")":
        return True
    opening = tokens.match_backward(i - 1) or 0  # of a cast to a pointer
    return tokens.text(i - 2) == "*" and tokens.all[opening - 1].kind != "word"


def is_declared(tokens, i, name):
    """Whether a token may declare a variable of a name, behind its type."""
    if tokens.text(i) != name or tokens.text(i + 1) == ".":
        return False
    before = i - 1
    while tokens.text(before) in ("&", "*"):
        before -= 1
    text = tokens.text(before)
    is_type = tokens.all[before].kind == "word" or text == ">"
    return is_type and text not in BEFORE_CALLS - {"const", "constexpr", "volatile"}


def kernels_of_launches(tokens):
    """Takes the cast to a void pointer away from the kernel that cudaLaunchKernel is given.

    The types of its parameters say how the arguments are to be read.
    """
    edits = []
    for i, token in enumerate(tokens.all):
        if token.text != "cudaLaunchKernel" or tokens.text(i + 1) != "(":
            continue
        first = i + 2
        if tokens.text(first) == "(":
            last = tokens.match_forward(first)
            if cast_to_void(tokens, first + 1, last):
                edits.append(Edit(tokens.all[first].start, tokens.all[last].end, ""))
        elif tokens.text(first) in ("reinterpret_cast", "static_cast", "const_cast"):
            edits += kernel_in_cast(tokens, first)
    return edits


def kernels_of_nodes(tokens):
    """Has the runtime keep the types of each kernel that is cast to a void pointer, for nodes.

    The parameters of a graph's node hold a kernel as such a pointer.
    """
    texts = {token.text for token in tokens.all}
    if "cudaKernelNodeParams" not in texts:
        return []
    kernels = {tokens.text(head.name) for head in find_heads(tokens)}
    edits = []
    for i, token in enumerate(tokens.all):
        if token.text not in kernels or tokens.text(i + 1) == "(":
            continue
        if is_cast_before(tokens, i - 1):
            end = i if tokens.text(i + 1) != "<" else template_end(tokens, i + 1)
            start = tokens.all[i - 1].start if tokens.text(i - 1) == "&" else token.start
            edits.append(Edit(start, start, '::emulator::kept_kernel("%s", ' % token.text))
            edits.append(Edit(tokens.all[end].end, tokens.all[end].end, ")"))
    return edits


def is_cast_before(tokens, i):
    """Whether a token ends `(void *)`, or `reinterpret_cast<void *>(`; an & may stand behind."""
    if tokens.text(i) == "&":
        i -= 1
    if tokens.text(i) == ")":
        return cast_to_void(tokens, (tokens.match_backward(i) or 0) + 1, i)
    opening = i - 1
    while tokens.text(opening) in (">", "*", "void", "const"):
        opening -= 1
    words = ("reinterpret_cast", "static_cast")
    return (
        tokens.text(i) == "("
        and tokens.text(opening) == "<"
        and tokens.text(opening - 1) in words
        and cast_to_void(tokens, opening + 1, i - 1)
    )


def cast_to_void(tokens, first, last):
    """Whether the tokens are `void *` or `const void *`."""
    if last is None:
        return False
    words = [tokens.text(i) for i in range(first, last)]
    return sorted(word for word in words if word != "const") == ["*", "void"]


def kernel_in_cast(tokens, first):
    """The edits that leave `kernel` of `reinterpret_cast<void *>(kernel)`."""
    close = first + 2
    while tokens.text(close) not in (">", ";", ""):
        close += 1
    if not cast_to_void(tokens, first + 2, close) or tokens.text(close + 1) != "(":
        return []
    return [Edit(tokens.all[first].start, tokens.all[close].end, "")]
