"""Finds the kernels and device functions of a program, and what may be known about them."""

import re

from cuda_tokens import OPENING
from launches import launch_macros
from shared_variables import is_file_scope, opens_namespace
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


class Program:
    """All sources of a program: the file to rewrite, and the local headers it includes.

    `sources` has their tokens by their paths; `said` gets (kernel, how it runs, reason).
    """

    def __init__(self, sources):
        self.sources, self.said = sources, []
        self.functions, self.macros, self.constants = {}, {}, set()
        self.specialised = set()  # names that follow `template <>`, and others of their heads
        for tokens in sources.values():
            for function in find_functions(tokens):
                self.functions.setdefault(function.name, []).append(function)
            self.read_specialised(tokens)
            self.read_macros(tokens)
            self.read_constants(tokens)
        self.hidden_indices = any(self.uses_indices_in_classes(tokens) for tokens in sources.values())
        self.problems = {}

    def read_specialised(self, tokens):
        for i in range(len(tokens.all)):
            if [tokens.text(i), tokens.text(i + 1), tokens.text(i + 2)] == ["template", "<", ">"]:
                while tokens.text(i) not in ("", ";", "{"):
                    self.specialised.add(tokens.text(i))
                    i += 1

    def read_macros(self, tokens):
        """Notes the tokens of each macro; twice defined ones count as both."""
        for i, token in enumerate(tokens.all):
            if tokens.is_defined(i):
                last = i
                while tokens.together(last + 1, i):
                    last += 1
                self.macros.setdefault(token.text, []).append((tokens, i + 1, last))

    def read_constants(self, tokens):
        """Notes `const int n`, `constexpr T n` and enumerators at file scope."""
        for i, token in enumerate(tokens.all):
            if token.text in ("const", "constexpr") and token.directive is None:
                words, behind = Parser(tokens).specifiers(i)
                is_plain = tokens.text(behind + 1) == "=" and tokens.all[behind].kind == "word"
                if is_plain and is_file_scope(tokens, i) and "__shared__" not in words:
                    self.constants.add(tokens.text(behind))
            if token.text == "enum":
                self.read_enumerators(tokens, i)

    def read_enumerators(self, tokens, i):
        while tokens.text(i) not in ("", ";", "{", ")"):
            i += 1
        close = tokens.match_forward(i) if tokens.text(i) == "{" else None
        for k in range(i, close or i):
            if tokens.text(k) in ("{", ",") and tokens.all[k + 1].kind == "word":
                self.constants.add(tokens.text(k + 1))

    def uses_indices_in_classes(self, tokens):
        """Whether a class's own functions, whose calls are hard to see, know which thread runs."""
        for i, token in enumerate(tokens.all):
            if token.text in ("struct", "class", "union", "operator"):
                brace = i
                while tokens.text(brace) not in ("", ";", "{", "}"):
                    brace += 1
                close = tokens.match_forward(brace) if tokens.text(brace) == "{" else None
                told = INDICES + (BARRIER,)
                if any(tokens.text(k) in told for k in range(brace, close or brace)):
                    return True
        return False

    def macro_words(self, name, seen=()):
        """All words that a macro may become."""
        for tokens, first, last in self.macros.get(name, []):
            for i in range(first, last + 1):
                word = tokens.text(i)
                yield word
                if word in self.macros and word not in seen:
                    yield from self.macro_words(word, (*seen, name))

    def macro_problem(self, name):
        """Why a function that uses a macro is run thread by thread, or None."""
        for word in self.macro_words(name):
            known = word in TYPE_WORDS or word in PURE or word in INDICES or word in self.macros
            known = known or word in ("x", "y", "z", "w", "static_cast", "const", "sizeof")
            known = known or word in self.constants or not re.match(r"[^\W\d]\w*$", word)
            if not known and not self.is_macro_parameter(name, word):
                return "the macro %s" % name
        return None

    def is_macro_parameter(self, name, word):
        """Whether a word is a parameter of a macro."""
        for tokens, first, _ in self.macros[name]:
            behind = tokens.all[first - 1].end
            if first < len(tokens.all) and tokens.all[first].start == behind:
                close = tokens.match_forward(first) if tokens.text(first) == "(" else None
                if close and any(tokens.text(k) == word for k in range(first, close)):
                    return True
        return False

    def problem(self, function):
        """Why a function cannot be called out of a loop, or None. A barrier is no reason."""
        if function not in self.problems:
            self.problems[function] = "it calls itself"
            self.problems[function] = self.find_problem(function)
        return self.problems[function]

    def find_problem(self, function):
        if self.hidden_indices:
            return "a class has functions that know their thread"
        if function.brace is None or function.parameters is None:
            return "its declaration"
        if "..." in function.words or any(
            function.tokens.text(i) == "..." or function.tokens.text(i) == "."
            for i in range(function.open, function.close)
        ):
            return "a variable number of arguments"
        start, end = (function.tokens.all[i].start for i in (function.brace, function.end))
        text = function.tokens.source[start:end]
        if re.search(r"^[^\S\n]*#[^\S\n]*(?!pragma[^\S\n]+unroll)", text, re.MULTILINE):
            return "a preprocessor's line"
        for i in range(function.brace, function.end):
            found = self.token_problem(function, i)
            if found is not None:
                return found
        return None

    def token_problem(self, function, i):
        tokens, word = function.tokens, function.tokens.text(i)
        if tokens.all[i].directive is not None:
            return "a preprocessor's line"
        if word in REFUSED:
            return word
        if word == "[" and tokens.all[i - 1].kind != "word" and tokens.text(i - 1) not in "])>":
            return "a lambda"
        if word in self.macros:
            return self.macro_problem(word)
        if word == "(":
            return self.call_problem(function, i)
        if word in self.functions and tokens.text(i - 1) not in (".", "->"):
            if tokens.text(i + 1) not in ("(", "<") and not self.is_variable(function, i):
                return "the address of %s" % word
        return None

    def is_variable(self, function, i):
        """Whether a token names a local variable, or declares it."""
        function.parse()
        variables = list(function.parameters)
        for statement in function.block.walk():
            if statement.kind == "declaration":
                variables += statement.variables
        return any(variable.name == function.tokens.text(i) for variable in variables)

    def call_problem(self, function, i):
        tokens = function.tokens
        if tokens.text(i - 1) in (")", "]"):
            return None if self.is_cast(function, i - 1) else "a call through a pointer"
        index = call_name(tokens, i)
        if index is None:
            return None
        name = tokens.text(index)
        known = PURE | LOADS | ORDERED | TYPE_WORDS
        if name in known or name in CASTS or name in OPERATORS or name in self.macros:
            return None
        if name == BARRIER and tokens.text(i + 1) == ")" and tokens.text(i + 2) == ";":
            return None if function.is_kernel else "a barrier in a device function"
        if name in function.template_names() or self.is_constructed(function, index):
            return None
        called = self.functions.get(name)
        if called is None or name in self.specialised:
            return "it calls %s, which is not known" % name
        for other in called:
            if self.problem(other) is not None:
                return "it calls %s: %s" % (name, self.problem(other))
            if other.tokens is tokens and other.end is not None and other.end > function.first:
                return "it calls %s, which stands below" % name
        return None

    def is_constructed(self, function, index):
        """Whether a name before a ( is that of a variable that is declared there."""
        before = function.tokens.all[index - 1]
        word_before = before.kind == "word" and before.text not in OPERATORS + ("else", "do")
        return word_before or before.text in ("*", ">") and self.is_variable(function, index)

    def is_cast(self, function, close):
        """Whether the parentheses that close at an index hold a type."""
        tokens = function.tokens
        if tokens.text(close) != ")":
            return False
        known = TYPE_WORDS | function.template_names() | {"const", "*", "&"}
        first = tokens.match_backward(close)
        if call_name(tokens, first) is not None and tokens.text(first - 1) in OPERATORS:
            return tokens.text(first - 1) in ("if", "for", "while")
        words = [tokens.text(k) for k in range(first + 1, close)]
        return bool(words) and all(word in known for word in words)

    def knows_thread(self, function, seen=()):
        """Whether a function, or what it calls, uses an index."""
        words = {function.tokens.text(i) for i in range(function.brace, function.end)}
        for name in list(words & set(self.macros)):
            words |= set(self.macro_words(name))
        if words & set(INDICES):
            return True
        return any(self.name_knows_thread(name, (*seen, function)) for name in words)

    def name_knows_thread(self, name, seen=()):
        """Whether a device function of a name uses an index."""
        return any(
            other.brace is not None and not other.is_kernel and self.knows_thread(other, seen)
            for other in self.functions.get(name, [])
            if other not in seen
        )

    def is_ordered(self, first, last, tokens):
        """Whether code has a call whose order among threads shows."""
        for i in range(first, last + 1):
            word = tokens.text(i)
            if word in ORDERED:
                return True
            for other in self.functions.get(word, []):
                if other.brace and self.is_ordered(other.brace, other.end, other.tokens):
                    return True
        return False

    def name_problem(self, name):
        """Why a function cannot get an overload beside it, or None."""
        group = self.functions[name]
        if name in self.specialised:
            return "a specialisation"
        if any(function.brace is None for function in group):
            return "it is declared before"
        for function in group:
            if function.words[-1:] == ["::"]:
                return "it is a member"
            if not is_file_scope(function.tokens, function.first):
                return "it is a member"
            if function.is_kernel != group[0].is_kernel:
                return "a kernel and a function of one name"
        for tokens in self.sources.values():
            heads = {f.name_index for f in group if f.tokens is tokens}
            for i, token in enumerate(tokens.all):
                if token.text == name and i not in heads and not self.is_plain_use(tokens, i):
                    return "its name is used as a value"
        return None

    def is_plain_use(self, tokens, i):
        """Whether an overload more does no harm where a name is used."""
        behind, before = tokens.text(i + 1), tokens.text(i - 1)
        if behind == "<":
            close = Parser(tokens).template_forward(i + 1)
            behind = tokens.text(close + 1) if close is not None else ""
        if behind in ("<<<", "(") or before in (".", "->") or tokens.is_defined(i):
            return True
        if tokens.all[i].directive is not None:
            return False
        return self.is_taken_argument(tokens, i) or declares(tokens, i)

    def is_taken_argument(self, tokens, i):
        """Whether a name is an argument of a macro that launches, or of TAKE_KERNELS."""
        depth = 0
        while i > 0 and tokens.text(i) not in (";", "{", "}"):
            depth += (tokens.text(i) == ")") - (tokens.text(i) == "(")
            if depth < 0:
                macros = {name for source in self.sources.values() for name in launch_macros(source)}
                name = tokens.text(i - 1)
                return name in macros or name in TAKE_KERNELS
            i -= 1
        return False


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
    return text == ">" or before.kind == "word" and text not in ("return", "else", "do", "case")
