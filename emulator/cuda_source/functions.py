"""Finds the kernels and device functions of a program, and what may be known about them."""

import re

from cuda_source.shared_variables import opens_namespace
from cuda_source.statements import QUALIFIERS, TYPE_WORDS, VECTORS, Parser, Variable, resolve
from cuda_source.tokens import OPENING

INDICES = ("threadIdx", "blockIdx", "blockDim", "gridDim")
CASTS = ("static_cast", "reinterpret_cast", "const_cast")
OPERATORS = (
    "sizeof",
    "alignof",
    "decltype",
    "if",
    "for",
    "while",
    "switch",
    "return",
    "else",
    "do",
)


def _names(*lists):
    return frozenset(word for words in lists for word in words.split())


_OF_FLOATS = (
    "exp exp2 exp10 expm1 log log2 log10 log1p sqrt rsqrt cbrt rcbrt sin cos tan asin acos atan "
    "sinh cosh tanh asinh acosh atanh sinpi cospi erf erfc erfinv erfcinv normcdf normcdfinv floor "
    "ceil round trunc rint nearbyint fabs lgamma tgamma pow fmod fmax fmin hypot rhypot atan2 "
    "copysign fdim remainder ldexp fma norm3d norm4d rnorm3d rnorm4d fdivide lround llround lrint"
)
# Of the parts of a word, behind __v and before 2 or 4.
_OF_WORDS = (
    "abs absss neg negss add addss addus sub subss subus maxs maxu mins minu absdiffs absdiffu "
    "avgs avgu haddu sads sadu"
).split() + [
    kind + relation for kind in ("cmp", "set") for relation in
    "eq ne ges geu gts gtu les leu lts ltu".split()
]  # fmt: skip
# Functions that change nothing and depend on nothing but their arguments.
PURE = (
    _names(_OF_FLOATS, _OF_FLOATS.replace(" ", "f ") + "f")
    | _names(
        "min max abs labs llabs isnan isinf isfinite signbit umin umax __expf __exp10f __logf "
        "__log2f __log10f __powf __sinf __cosf __tanf __fdividef __fadd_rn __fsub_rn __fmul_rn "
        "__fdiv_rn __frcp_rn __fsqrt_rn __frsqrt_rn __fmaf_rn __dadd_rn __dmul_rn __fma_rn "
        "__saturatef __int_as_float __float_as_int __uint_as_float __float_as_uint __popc __clz "
        "__ffs __brev __mul24 __umul24 __float2int_rn __float2int_rz __int2float_rn __popcll "
        "__clzll __ffsll __brevll __byte_perm __mulhi __umulhi __mul64hi __umul64hi __sad __usad "
        "__hadd __rhadd __uhadd __urhadd __fns __dp4a __dp2a_lo __dp2a_hi __funnelshift_l "
        "__funnelshift_r __funnelshift_lc __funnelshift_rc llmax llmin ullmax ullmin "
        "__double_as_longlong __longlong_as_double __builtin_inf __builtin_inff "
        "__builtin_huge_val __builtin_huge_valf __builtin_nan __builtin_nanf "
        "__builtin_isnan __builtin_isinf"
    )
    | frozenset("__v%s%d" % (name, parts) for name in _OF_WORDS for parts in (2, 4))
    | frozenset(
        "__%s%s_r%s" % (kind, what, way)
        for kind in "fd"
        for way in "nzud"
        for what in ("add", "sub", "mul", "div", "rcp", "sqrt")
    )
    | frozenset(
        "__%s2%s_r%s" % (kind, whole, way)
        for kind in ("float", "double")
        for way in "nzud"
        for whole in ("int", "uint", "ll", "ull")
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
    "assert __syncwarp __activemask co_await _Pragma __builtin_unreachable decltype template",
    # They tell which function it is, or whether a name is a constant's.
    "__func__ __FUNCTION__ __PRETTY_FUNCTION__ __builtin_FUNCTION typeof __typeof __typeof__",
    # Other spellings of operators.
    "and and_eq bitand bitor compl not not_eq or or_eq xor xor_eq",
)
DIGRAPHS = ("<:", ":>", "<%", "%>", "%:")
BARRIER = "__syncthreads"
ATTRIBUTES = ("__launch_bounds__", "__attribute__", "__align__", "alignas", "__maxnreg__")
# Words before a parenthesis that is none of a function's parameters.
NO_FUNCTIONS = (*ATTRIBUTES, "decltype", "explicit", "sizeof", "alignof", "noexcept")
# What may stand between a function's parameters and its body, brackets of any kind aside.
BEHIND_PARAMETERS = ("const", "volatile", "noexcept", "override", "final", "__attribute__", "->")
# They take a kernel's address, and find the one that returns nothing among its overloads.
TAKE_KERNELS = _names(
    "cudaFuncSetAttribute cudaFuncGetAttributes cudaFuncSetCacheConfig "
    "cudaOccupancyMaxActiveBlocksPerMultiprocessor"
)


class Function:
    """A function with a body: its parts as token indices."""

    def __init__(self, tokens, first, name, brace):
        self.tokens, self.first, self.name_index, self.brace = tokens, first, name, brace
        self.name = name_of(tokens, name)
        self.open = name + 1
        self.close = tokens.match_forward(self.open)
        self.end = tokens.match_forward(brace) if brace is not None else None
        self.words = [tokens.text(i) for i in range(first, name)]
        self.is_kernel = "__global__" in self.words
        self.parameters = self.read_parameters()
        self.block = self.named = None

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

    def variables(self):
        """The parameters, and the local variables that are seen."""
        found = list(self.parameters)
        for statement in self.parse().walk():
            found += getattr(statement, "variables", [])
        return found

    def names_variable(self, i):
        """Whether a token is the name of a variable that is declared before it."""
        if self.named is None:
            self.named = {k for variable in self.variables() for k in variable.uses}
        return i in self.named

    def template_names(self):
        """Names of the template's parameters."""
        return {self.tokens.text(i) for i in self.template_indices()} - TYPE_WORDS

    def type_names(self):
        """Names of the template's parameters that are types."""
        text = self.tokens.text
        return {text(i) for i in self.template_indices() if text(i - 1) in ("typename", "class")}

    def template_indices(self):
        """Indices of the names of its template parameters."""
        if self.tokens.text(self.first) != "template":
            return []
        close = Parser(self.tokens).template_forward(self.first + 1)
        inside = range(self.first + 2, close or self.first + 2)
        return [i for i in inside if self.tokens.text(i + 1) in (",", ">", "=")]


def takes_values(function):
    """Whether all parameters of a function are numbers, or pointers to them, by value.

    Then it makes no difference to overloads whether an argument is constant.
    """
    known = TYPE_WORDS | {"const"}
    return function.parameters is not None and all(
        not parameter.is_reference and set(parameter.specifiers) <= known
        for parameter in function.parameters
    )


def is_built_in(variable, names=frozenset()):
    """Whether a variable is a number or a pointer, as far as its words say.

    So are those of a template's types, whose `names` these are: the compiler knows.
    """
    words = set(variable.specifiers) - QUALIFIERS - names
    known = words <= TYPE_WORDS | {"auto"} and not words & VECTORS
    return ("*" in variable.stars or known) and not variable.is_reference


def declaration_start(tokens, i):
    """Index of the first token of the declaration that a token is in."""
    while i > 0:
        before = tokens.text(i - 1)
        if before in (";", "{", "}", ":"):
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


def name_of(tokens, index):
    """A function's name; `operator int` is no other function's, and no type's."""
    first = index
    while first > 0 and tokens.all[first - 1].kind == "word" and tokens.text(first) != "operator":
        first -= 1
    if tokens.text(first) != "operator":
        return tokens.text(index)
    return " ".join(tokens.text(i) for i in range(first, index + 1)) + " of an object"


def find_body(tokens, i):
    """Index of the { of a body, from behind a function's parameters on; None if none is found."""
    is_type, depth = False, 0
    while tokens.text(i) not in ("", ";", ":", "requires", "try") and not is_assignment(tokens, i):
        text = tokens.text(i)
        if text == "{" and depth == 0:
            return i
        if text == "->":
            is_type = True
        depth += (text == "<") - (text == ">")
        if text in OPENING:
            i = tokens.match_forward(i) or i
        elif not is_type and text not in BEHIND_PARAMETERS:
            return None
        i += 1
    return None


def is_assignment(tokens, i):
    """Whether a token is a `=` of its own, not of `==` and its like."""
    return tokens.text(i) == "=" and tokens.text(i - 1) not in "=!<>" and tokens.text(i + 1) != "="


def find_function(tokens, index):
    """The function that a __global__ or __device__ belongs to, or None."""
    i = index
    while tokens.text(i) not in ("", ";", "}") and not is_assignment(tokens, i):
        if tokens.text(i) == "{":
            if tokens.text(i - 1) != ">":  # an object within the arguments of a template
                return None
            i = tokens.match_forward(i) or i
        if tokens.text(i) == "(":
            close = tokens.match_forward(i)
            attribute = tokens.text(i - 1) in NO_FUNCTIONS
            if close is None:
                return None
            if not attribute and tokens.all[i - 1].kind == "word":
                brace = find_body(tokens, close + 1)
                if brace is not None and tokens.match_forward(brace) is None:
                    return None
                return Function(tokens, declaration_start(tokens, index), i - 1, brace)
            i = close
        i += 1
    return None


def find_functions(tokens):
    """All functions marked __global__ or __device__, also those without a body."""
    if tokens.functions is not None:
        return tokens.functions
    found, known = [], set()
    for i, token in enumerate(tokens.all):
        if token.text not in ("__global__", "__device__"):
            continue
        function = find_function(tokens, i)
        if function is not None and function.name_index not in known:
            known.add(function.name_index)
            found.append(function)
    tokens.functions = found
    return found


def call_name(tokens, i):
    """Index of the name before the ( at an index, past template arguments; None if no name."""
    if tokens.text(i - 1) == ">":
        opening = tokens.template_backward(i - 1)
        i = i if opening is None else opening
    before = tokens.all[i - 1] if i > 0 else None
    return i - 1 if before is not None and before.kind == "word" else None


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
