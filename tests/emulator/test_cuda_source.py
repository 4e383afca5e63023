"""What the readers of CUDA make of small texts: parameters, scopes, and where a file begins."""

import pytest

from cuda_source.direct_calls import can_be_asked
from cuda_source.functions import find_functions
from cuda_source.host_and_device import declarations, device_functions, function_from
from cuda_source.kernel_starts import parameters_of
from cuda_source.statements import Parser, resolve
from cuda_source.tokens import Tokens, without_prelude
from cuda_source.waiting_loops import waiting_loops
from findings.discarded import is_discarded


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", []),
        ("void", []),
        ("void *p", ["p"]),
        ("int a", ["a"]),
        ("const float *a, int n", ["a", "n"]),
        ("int", ["made_up_0"]),
        ("int a, float", ["a", "made_up_1"]),
    ],
)
def test_a_kernel_has_the_parameters_between_its_brackets(text, names):
    tokens = Tokens(f"f({text})")
    found = parameters_of(tokens, 2, len(tokens.all) - 2, "made_up_%d")
    assert [parameter.given for parameter in found] == names


SCOPES = """{
  int a = 1, b = a;
  { int a = b; a = 2; }
  for (int i = a; i < b; i++) { b += i; }
  if (a) int c = b;
  c = a.b;
}"""


def test_every_use_is_of_the_variable_that_is_seen_there():
    tokens = Tokens(SCOPES)
    block = Parser(tokens).block(0)
    resolve(tokens, block, [])
    found = [v for each in block.walk() for v in getattr(each, "variables", [])]
    assert [variable.name for variable in found] == ["a", "b", "a", "i", "c"]
    lines = [
        [SCOPES.count("\n", 0, tokens.all[use].start) + 1 for use in variable.uses]
        for variable in found
    ]
    # The last `c` is of another scope, and `.b` a member.
    assert lines == [[2, 4, 5, 6], [3, 4, 4, 5], [3], [4, 4, 4], []]
    assert [variable.is_shadowed for variable in found] == [True, False, True, False, False]


@pytest.mark.parametrize("kind", ["int", "a::b", "a::b<c>", "a<b<1> >::c::d", "std::a *"])
def test_a_declaration_is_told_from_an_expression_by_its_type(kind):
    tokens = Tokens("{ %s x = 1; }" % kind)  # noqa: UP031 (it has braces)
    (statement,) = Parser(tokens).block(0).body
    assert statement.kind == "declaration"
    assert [variable.name for variable in statement.variables] == ["x"]


def test_headers_of_the_system_are_passed_over():
    header = '# 1 "/usr/include/x.h" 1 3\nint x;\n# 1 "/usr/include/y.h" 1 3\nint y;\n'
    header += '# 2 "/usr/include/x.h" 2 3\nint more;\n# 5 "a.cu" 2\n'
    tokens = Tokens('# 1 "a.cu"\n' + header + "int own;\nint last;\n")
    assert [token.text for token in tokens.all] == ["int", "own", ";", "int", "last", ";"]
    assert [tokens.place(token.start) for token in tokens.all[::3]] == [("a.cu", 5), ("a.cu", 6)]


ENTERED = """# 1 "a.cu"
# 1 "<built-in>"
# 1 "<command-line>"
# 1 "prelude.h" 1
int prelude;
# 1 "<command-line>" 2
%s# 1 "a.cu"
int own;
"""
MORE = '# 1 "more.h" 1\nint more;\n# 1 "<command-line>" 2\n'


def test_what_the_options_include_behind_the_prelude_is_kept():
    assert without_prelude(ENTERED % "", "a.cu") == "int own;\n"
    assert without_prelude(ENTERED % MORE, "a.cu") == (
        '# 1 "more.h"\nint more;\n# 1 "a.cu"\nint own;\n'
    )
    assert without_prelude("int own;\n", "a.cu") == "int own;\n"


@pytest.mark.parametrize(("line", "is_thrown_away"), [(0, False), (1, True), (2, True), (3, False)])
def test_calls_on_the_first_and_the_last_line_are_seen(line, is_thrown_away):
    assert is_discarded("{ f(a);\n f(b); }", line, "f") is is_thrown_away


@pytest.mark.parametrize(
    ("text", "can"),
    [
        ("__global__ void k(int a) { f(a); }", True),
        ("__global__ void k(int a);", False),
        ("template <class T> __global__ void k(T a) { f(a); }", False),
        ("__global__ void k(int a) {\n#pragma unroll\n f(a); }", True),
        ("__global__ void k(int a,\n#line 3\n int b) { f(a); }", False),
    ],
)
def test_the_compiler_is_asked_about_kernels_that_stand_for_themselves(text, can):
    functions = find_functions(Tokens(text))
    assert [can_be_asked(function) for function in functions] == [can]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("__device__ int f(int a) { return a; }", "f"),
        ("__device__ T operator=(T a) { return a; }", "="),
        ("__device__ T operator+(T a);", "+"),
        ("__device__ int a = f(1);", None),
        ("__device__ int a;", None),
    ],
)
def test_a_function_is_told_from_a_variable(text, name):
    tokens = Tokens(text)
    found = function_from(tokens, 0)
    assert (found and tokens.text(found.name_index)) == name
    assert len(device_functions(tokens)) == (name is not None)


def test_declarations_are_all_that_is_no_function():
    text = "int a; void f() { int c; } struct S { int d; void g() { h(); } }; int b;"
    said = [words for _, _, words in declarations(Tokens(text), [])]
    assert said == ["int a ;", "struct S { int d ; void g ( ) { }", ";", "int b ;"]


DEVICE = """
struct Shared { volatile int flag; };
__device__ int load(const int* p) { return *(volatile const int*)p; }
__device__ int counted(int* p) { ++*p; return *(volatile int*)p; }
__global__ void kernel(int* p, int b, volatile int* flags, Shared* shared) {
  int v = 0, old = 0, assumed;
  %s
}
"""


def waits(loop):
    """Of each loop that may wait, whether it does nothing else."""
    return [found.only_waits() for found in waiting_loops(Tokens(DEVICE % loop))]


@pytest.mark.parametrize(
    "loop",
    [
        "while (*(volatile int*)p != b);",
        "while (flags[b] == 0) {}",
        "while (!shared->flag) continue;",
        "while (load(p) == 0) __nanosleep(10);",
        "while (atomicCAS(p, 0, 1) != 0);",
        "while (atomicAdd(p, 0) < b) { __threadfence(); }",
        "do v = flags[0]; while (v == 0);",
        "do { v = flags[0]; } while (__any_sync(0xffffffff, v == 0));",
        "while (true) { if (load(p) == b) break; }",
        "for (;;) { int now = flags[1]; if (now != 0) return; ++v; }",
        "for (int i = 0; flags[0] == 0; ++i);",
    ],
)
def test_a_loop_that_only_waits_is_seen(loop):
    assert waits(loop) == [True]


@pytest.mark.parametrize(
    "loop",
    [
        "while (!v) { if (atomicCAS(p, 0, 1) == 0) { p[1] += 1; atomicExch(p, 0); v = 1; } }",
        "while (flags[0] == 0) p[b] = 1;",
        "while (flags[0] == 0) *p += 1;",
        "while (counted(p) == 0);",
        "while (atomicAdd(p, 0) == 0) shared[b] = Shared();",
        "while (*p == 0) __threadfence();",
    ],
)
def test_a_loop_that_may_wait_and_does_more_is_told_from_it(loop):
    assert waits(loop) == [False]


@pytest.mark.parametrize(
    "loop",
    [
        "for (int i = 0; i < 10; ++i) atomicAdd(p, 1);",
        "for (int i = 0; i < 10; ++i) { int at = atomicAdd(p, 1); p[at] = i; }",
        "for (int i = 0; i < 4; ++i) { v = *(volatile int*)p; *(volatile int*)p = v + 1; }",
        "for (int s = 32; s > 0; s >>= 1) flags[b] += flags[b + s];",
        "do { assumed = old; old = atomicCAS(p, assumed, assumed + 1); } while (assumed != old);",
        "while (*p == 0);",
        "for (; flags[0] != 0; ++v) __syncthreads();",
        'for (int i = 0; i < 3; ++i) { asm volatile("" ::: "memory"); }',
    ],
)
def test_a_loop_that_waits_for_nobody_is_left_alone(loop):
    assert waits(loop) == []
