"""Finds the kernels and device functions of a program, and what may be known about them."""

import re

from cuda_tokens import OPENING
from shared_variables import opens_namespace
from statements import TYPE_WORDS, Parser, Variable, resolve

INDICES = ("threadIdx", "blockIdx", "blockDim", "gridDim")
CASTS = ("static_cast", "reinterpret_cast", "const_cast")
OPERATORS = ("sizeof", "alignof", "decltype", "if", "for", "while", "switch", "return")


def _names(*lists):
    return frozenset(word for words in lists for word in words.split())


_OF_FLOATS = (
    "exp exp2 exp10 expm1 log log2 log10 log1p sqrt rsqrt cbrt rcbrt sin cos tan asin acos atan "
    "sinh cosh tanh asinh acosh atanh sinpi cospi erf erfc erfinv erfcinv normcdf normcdfinv floor "
    "ceil round trunc rint nearbyint fabs lgamma tgamma pow fmod fmax fmin hypot rhypot atan2 "
    "copysign fdim remainder ldexp fma norm3d norm4d rnorm3d rnorm4d fdivide lround llround lrint"
)
# Functions that change nothing and depend on nothing but their arguments.
PURE = (
    _names(_OF_FLOATS, _OF_FLOATS.replace(" ", "f ") + "f")
    | _names(
        "min max abs labs llabs isnan isinf isfinite signbit umin umax __expf __exp10f __logf "
        "__log2f __log10f __powf __sinf __cosf __tanf __fdividef __fadd_rn __fsub_rn __fmul_rn "
        "__fdiv_rn __frcp_rn __fsqrt_rn __frsqrt_rn __fmaf_rn __dadd_rn __dmul_rn __fma_rn "
        "__saturatef __int_as_float __float_as_int __uint_as_float __float_as_uint __popc __clz "
        "__ffs __brev __mul24 __umul24 __float2int_rn __float2int_rz __int2float_rn __popcll "
        "__clzll __ffsll"
    )
    | frozenset("make_" + word for word in TYPE_WORDS if re.fullmatch(r"[a-z]+[1-4]", word))
)
LOADS = _names("__ldg __ldca __ldcg __ldcs __ldlu __ldcv")
# These leave traces of the order of threads.
ORDERED = _names(
    "printf __threadfence __threadfence_block __threadfence_system __stwb __stcg __stcs __stwt",
    " ".join(
        "atomic" + what + scope
        for what in "Add Sub Exch Min Max Inc Dec CAS And Or Xor".split()
        for scope in ("", "_block", "_system")
    ),
)
# With one of these in it, a function is run thread by thread.
REFUSED = _names(
    "asm __asm__ goto static thread_local struct class union try throw operator new delete this "
    "assert __syncwarp __activemask __LINE__ co_await _Pragma __builtin_unreachable constexpr_if"
)
BARRIER = "__syncthreads"
ATTRIBUTES = ("__launch_bounds__", "__attribute__", "__align__", "alignas", "__maxnreg__")
# They take a kernel's address, and find the one that returns nothing among its overloads.
TAKE_KERNELS = _names(
    "cudaFuncSetAttribute cudaFuncGetAttributes cudaFuncSetCacheConfig "
    "cudaOccupancyMaxActiveBlocksPerMultiprocessor"
)


class Function:
    """A function with a body: its parts as token indices."""

    def __init__(self, tokens, first, name, brace):
        self.tokens, self.first, self.name_index, self.brace = tokens, first, name, brace
        self.name = tokens.text(name)
        self.open = name + 1
        self.close = tokens.match_forward(self.open)
        self.end = tokens.match_forward(brace) if brace is not None else None
        self.words = [tokens.text(i) for i in range(first, name)]
        self.is_kernel = "__global__" in self.words
        self.parameters = self.read_parameters()
        self.block = None

    def read_parameters(self):
        """The named parameters, or None if they are not understood."""
        parser, i, found = Parser(self.tokens), self.open + 1, []
        while i < self.close:
            words, i = parser.specifiers(i)
            if not words:
                return None
            variable, i = self.of_array(words, i) or parser.declarator(words, i)
            if variable is not None:
                variable.is_parameter = True
                found.append(variable)
            while i < self.close and self.tokens.text(i) != ",":
                if self.tokens.text(i) in OPENING or variable is not None:
                    return None
                i += 1
            i += 1
        return found

    def of_array(self, words, i):
        """The variable of `T (*name)[n]` and the index behind it, or None."""
        text = self.tokens.text
        if text(i) != "(" or text(i + 1) not in ("*", "&") or text(i + 3) != ")":
            return None
        variable = Variable(text(i + 2), words, text(i + 1))
        i += 4
        while text(i) == "[":
            i = self.tokens.match_forward(i) + 1
        return variable, i

    def parse(self):
        """The body as a statement, with its variables resolved."""
        if self.block is None:
            self.block = Parser(self.tokens).block(self.brace)
            resolve(self.tokens, self.block, self.parameters)
        return self.block

    def template_names(self):
        """Names of the template's parameters."""
        texts = [self.tokens.text(i) for i in range(self.first, self.name_index)]
        if texts[:1] != ["template"]:
            return set()
        close = Parser(self.tokens).template_forward(self.first + 1)
        inside = range(self.first + 2, close or self.first + 2)
        return {
            self.tokens.text(i) for i in inside if self.tokens.text(i + 1) in (",", ">", "=")
        } - TYPE_WORDS


def declaration_start(tokens, i):
    """Index of the first token of the declaration that a token is in."""
    while i > 0:
        before = tokens.text(i - 1)
        if before in (";", "{", "}", ":") or tokens.all[i - 1].directive is not None:
            break
        if before == ">":
            i = tokens.template_backward(i - 1) or i - 1
        elif before in (")", "]"):
            opening = tokens.match_backward(i - 1) or 0
            if before == ")" and tokens.text(opening - 1) not in ATTRIBUTES:
                break  # a macro's call without a semicolon
            i = opening
        else:
            i -= 1
    return i


def find_function(tokens, index):
    """The function that a __global__ or __device__ belongs to, or None."""
    i = index
    while tokens.text(i) not in ("", ";", "{", "}", "="):
        if tokens.text(i) == "(":
            close = tokens.match_forward(i)
            attribute = tokens.text(i - 1) in ATTRIBUTES
            if close is None:
                return None
            if not attribute and tokens.all[i - 1].kind == "word":
                behind = close + 1
                while tokens.text(behind) in ("const", "noexcept"):
                    behind += 1
                brace = behind if tokens.text(behind) == "{" else None
                if brace is not None and tokens.match_forward(brace) is None:
                    return None
                return Function(tokens, declaration_start(tokens, index), i - 1, brace)
            i = close
        i += 1
    return None


def find_functions(tokens):
    """All functions marked __global__ or __device__, also those without a body."""
    found, known = [], set()
    for i, token in enumerate(tokens.all):
        if token.text not in ("__global__", "__device__") or token.directive is not None:
            continue
        function = find_function(tokens, i)
        if function is not None and function.name_index not in known:
            known.add(function.name_index)
            found.append(function)
    return found


def call_name(tokens, i):
    """Index of the name before the ( at an index, past template arguments; None if no name."""
    if tokens.text(i - 1) == ">":
        opening = tokens.template_backward(i - 1)
        i = i if opening is None else opening
    before = tokens.all[i - 1] if i > 0 else None
    return i - 1 if before is not None and before.kind == "word" else None


def declares(tokens, i):
    """Whether the function or global around a token has a variable of the token's name."""
    first, last = next(((a, b) for a, b in segments(tokens) if a <= i <= b), (i, i))
    return any(
        tokens.text(k) == tokens.text(i) and _is_declared(tokens, k) for k in range(first, last)
    )


def segments(tokens):
    """Index pairs of the declarations of a file."""
    start = i = 0
    while i < len(tokens.all):
        text = tokens.text(i)
        if text == "{" and opens_namespace(tokens, i):
            start = i + 1
        elif text in OPENING:
            i = tokens.match_forward(i) or i
            if text == "{":
                yield start, i
                start = i + 1
        elif text in (";", "}"):
            yield start, i
            start = i + 1
        i += 1


def _is_declared(tokens, k):
    before, text = tokens.all[k - 1], tokens.text(k - 1)
    if tokens.text(k + 1) == "=" and tokens.text(k + 2) != "=":
        return True
    if text in ("*", "&"):
        return tokens.all[k - 2].kind == "word" or tokens.text(k - 2) == ">"
    return text == ">" or (before.kind == "word" and text not in ("return", "else", "do", "case"))
