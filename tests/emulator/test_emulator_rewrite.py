"""The emulated GPU's source pass: every spelling of a launch, shared variables, errors."""

import contextlib
import os
import re
import subprocess
import sys

import pytest

import kit as emulator_kit
import rewrite
from cuda_source.tokens import SourceError

BEFORE = """\
__global__ void k(int *p, int n) { p[0] = n; }
template <typename T, int n> __global__ void t(T *p) { p[0] = n; }
namespace a { namespace b { __global__ void k(int *p, int n) { p[0] = n; } } }
struct S { void (*member)(int *, int); };
template <int n> constexpr int size() { return n; }
int *p; S s{k}, *ps = &s;
void (*table[2])(int *, int) = {k, k};
void (*get(int))(int *, int) { return k; }
"""

# Statements that launch once.
SPELLINGS = [
    "k<<<1, 2>>>(p, 3);",
    "k <<< 1 , 2 >>> ( p , 3 ) ;",
    "k\n  <<<1,\n  2>>>\n  (p,\n   3);",
    "k<<<dim3(1, 1), dim3(2, 1, 1), 0, 0>>>(p, 3);",
    "k<<<dim3(1, (1, 1)), 2>>>(p, (1, 3));",
    "k<<<{1, 1}, {2}>>>(p, 3);",
    "t<int, 3><<<1, 2>>>(p);",
    "t<int, (4 > 3 ? 3 : 2)><<<1, 2>>>(p);",
    "t<int, size<3>()><<<1, 2>>>(p);",
    "t<int, 1 << 2><<<1, 2>>>(p);",
    "k<<<size<1>(), size<2>()>>>(p, 3);",
    "k<<<1, n < 5 ? 2 : 3>>>(p, 3);",
    "k<<<1, (n > 5) ? 2 : n>>>(p, 3);",
    "k<<<1, std::integral_constant<int, 2>::value>>>(p, 3);",
    "a::b::k<<<1, 2>>>(p, 3);",
    "::a::b::k<<<1, 2>>>(p, 3);",
    "::k<<<1, 2>>>(p, 3);",
    "(k)<<<1, 2>>>(p, 3);",
    "(*table[1])<<<1, 2>>>(p, 3);",
    "table[n - 2]<<<1, 2>>>(p, 3);",
    "get(5)<<<1, 2>>>(p, 3);",
    "s.member<<<1, 2>>>(p, 3);",
    "ps->member<<<1, 2>>>(p, 3);",
    "k<<<1, 2>>>(0, 0);",
    "k<< <1, 2>> >(p, 3);",
    "t<int, 3><< <1, 2>> >(p);",
    "k<<<1, 2>>>(NULL, n);",
    "k<<<1, 2>>>(p, 0);",
    "k<<<1, 2>>>(0,\n  (1, n));",
    "t<int, 3><<<1, 2>>>(0);",
    "t<int, 3><<<1, 2>>>(NULL);",
    "if (n) k<<<1, 2>>>(p, 3); else k<<<2, 2>>>(p, 4);",
    "if (!n) k<<<1, 1>>>(p, 3); else (k)<<<2, 2>>>(p, 4);",
    "for (int i = 0; i < 1; ++i) k<<<1, 2>>>(p, 3);",
    "do k<<<1, 2>>>(p, 3); while (0);",
    "switch (n) { case 3: k<<<1, 2>>>(p, 3); }",
    "n ? k<<<1, 2>>>(p, 3) : (void)0;",
    "(k<<<1, 2>>>(p, 3));",
    "[&] { k<<<1, 2>>>(p, 3); }();",
    "\n#define RUN k<<<1, 2>>>(p, 3)\nRUN;",
    "\n#define RUN(f, ...) \\\n  f<<<1, 2>>>(__VA_ARGS__)\nRUN(k, p, 3);",
    "\n#define RUN(f, ...) f<<<__VA_ARGS__>>>\nRUN(k, 1, 2)(p, 3);",
    "\n#define RUN(...) __VA_ARGS__\nRUN(k<<<1, 2>>>(p, 3));",
    "\n#define RUN(f) do { f<<<1, 2>>>(p, 3); } while (0)\nRUN(k);",
    "k /* a */ <<<1, /* >>> */ 2>>> // b\n (p, 3);",
    "k<<<1, 2>>>(NULL, 3);",
    "k<<<1, 2>>>(p, '>' - ';'); const char *c = \"<<<\"; (void)c;",
]  # fmt: skip

UNTOUCHED = [
    "// k<<<1, 2>>>(p)\n",
    "/* k<<<1,\n 2>>>(p) */",
    'const char *c = "k<<<1, 2>>>(p)";',
    'const char *c = R"(k<<<1, 2>>>(p) ")" ;',
    "int c = '\\'', d = 1'000 << 2 >> 1;",
    "#pragma message don't <<<\n",
    '# 3 "a<<<b.h" 1 3\nk<<<1, 2>>>(p);\n',
    "std::ostream &operator<<<int>(std::ostream &, const X<int> &);",
    "std::vector<std::vector<std::vector<int>>> v;",
]


def body(statement):
    """A program that runs a statement."""
    return f"{BEFORE}int main() {{ int n = 3; (void)n;\n{statement}\n}}\n"


def test_every_spelling_of_a_launch_compiles(kit, tmp_path):
    # All in one file, since compiling takes long; each in a function of its own.
    text = "#include <type_traits>\n" + BEFORE
    for i, statement in enumerate(SPELLINGS):
        macro = "#undef RUN\n" if "RUN" in statement else ""
        text += f"{macro}int launch_{i}(int n) {{\n{statement}\nreturn n; }}\n"
    source = tmp_path / "spellings.cu"
    source.write_text(text)
    done = kit.emucc("-Wno-unused-value", "-c", source, "-o", tmp_path / "spellings.o")
    assert done.returncode == 0, done.stderr


def rewritten(text):
    """A source without macros as plain C++, and only what comes of its own text."""
    return rewrite.rewrite(text, "a.cu")[0].partition('# 1 "a.cu"\n')[2]


@pytest.mark.parametrize("statement", [text for text in SPELLINGS if "RUN" not in text])
def test_launches_become_calls_on_the_same_lines(statement):
    text = body(statement)
    rest = rewritten(text)
    assert rest.count("\n") == text.count("\n")
    assert rest.count("::emulator::Configuration(") == len(re.findall(r"<<\s*<(?!\")", text))
    for old, new in zip(text.split("\n"), rest.split("\n"), strict=True):
        if "<<" not in old and ">>" not in old and not new.lstrip().startswith("::emulator"):
            # The kernel's name goes behind the configuration, and a parenthesis behind it all.
            assert old.replace(";", ");") == new or old == new or "emulator" in new or new == " "


@pytest.mark.parametrize("text", UNTOUCHED)
def test_what_only_looks_like_a_launch_is_left_alone(text):
    assert rewritten(text) == text


@pytest.mark.parametrize(
    "before, after",
    [
        ("extern __shared__ float s[];", " " * 18 + "float (&s)[] = EMULATOR_DYNAMIC_SHARED;"),
        ("__shared__ float a[4][5];", "           float (&a)[4][5] = EMULATOR_SHARED(a);"),
        ("__shared__ int a, b[2];",
         "           int &a = EMULATOR_SHARED(a), (&b)[2] = EMULATOR_SHARED(b);"),
        ("extern __shared__ __align__(16) T s[];",
         " " * 32 + "T (&s)[] = EMULATOR_DYNAMIC_SHARED;"),
        ("volatile __shared__ float w[64];",
         "volatile            float (&w)[64] = EMULATOR_SHARED(w);"),
        ("__shared__ X<float, 4> x;", "           X<float, 4> &x = EMULATOR_SHARED(x);"),
        ("__shared__ union { int i; float f; } u;",
         "           union { int i; float f; } &u = EMULATOR_SHARED(u);"),
    ],
)  # fmt: skip
def test_shared_variables_become_references(before, after):
    got = rewritten(f"void k() {{ {before} }}").splitlines()[-1]
    assert got.split(" static_assert")[0].removesuffix(" }") == "void k() { " + after


def test_shared_variables_of_a_file_are_each_threads_own():
    got = rewritten('extern "C" { namespace a { extern __shared__ int s[]; } }')
    assert "static thread_local" in got


@pytest.mark.parametrize(
    "text, said",
    [
        ("\n\nvoid f() { k<<<1, 2(p); }", "3: error: launch of `k`: `<<<` without `>>>`"),
        ("void f() { <<<1, 2>>>(p); }", "1: error: `<<<` without a kernel before it"),
        ("void f() { k<<<1, 2>>>; }", "1: error: launch of `k`: `(` expected after `>>>`"),
        ("void f() {\n k<<<1, 2>>>(p; }", "2: error: launch of `k`: `(` is not closed"),
    ],
)
def test_a_malformed_launch_is_an_error_with_its_line(kit, tmp_path, text, said):
    source = tmp_path / "bad.cu"
    source.write_text(text)
    done = kit.emucc("-c", source, "-o", tmp_path / "bad.o")
    assert done.returncode == 1
    assert done.stderr.strip() == f"{source}:{said}"
    assert not (tmp_path / "bad.o").exists()


def test_compiler_errors_name_the_students_file(kit, tmp_path):
    source = tmp_path / "typo.cu"
    source.write_text("__global__ void k(int *p) {\n  p[0] = undeclared;\n}\n")
    done = kit.emucc("-c", source, "-o", tmp_path / "typo.o")
    assert f"{source}:2:10: " in done.stderr
    assert "undeclared" in done.stderr


def test_too_much_static_shared_memory_does_not_compile(kit, tmp_path):
    source = tmp_path / "large.cu"
    source.write_text("__global__ void k() {\n  __shared__ float a[12289];\n  a[0] = 1;\n}\n")
    done = kit.emucc("-c", source, "-o", tmp_path / "large.o")
    assert f"{source}:2:" in done.stderr
    assert "48 KB of static shared memory" in done.stderr


# Uses of what there is not, each with what is said about it.
MISSING = [
    ("float x = tex1Dfetch<float>(n, 0);", "no textures (tex1Dfetch)"),
    ("cudaTextureObject_t t;", "no textures (cudaTextureObject_t)"),
    ("surf2Dwrite(1.0f, n, 0, 0);", "no surfaces (surf2Dwrite)"),
    ("cudaLaunchCooperativeKernel(0, 1, 1, 0);", "no barrier of a whole grid"),
]
MISSING_ON_DEVICE = [
    ('if (n) asm volatile("bar.sync 0;");', "no PTX (asm)"),
    ('unsigned u; asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(u) : "f"(1.0f));', "no PTX (asm)"),
    ('unsigned u; asm("cvt.rna.tf32.f32 %0;" : "=r"(u));', "no PTX (asm)"),
    ('unsigned u; asm("cvt.rna.tf32.f32 %0, %2;" : "=r"(u) : "f"(1.0f));', "no PTX (asm)"),
    ("k<<<1, 2>>>(p, 3);", "no launches in kernels (<<<)"),
]


def said_of(kit, tmp_path, text):
    """What the compiler says about a program, without warnings."""
    source = tmp_path / "missing.cu"
    source.write_text(text)
    done = kit.emucc("-w", "-c", source, "-o", tmp_path / "missing.o")
    assert (done.returncode == 0) == (done.stderr == "")
    return done.stderr


@pytest.mark.parametrize("statement, said", MISSING)
def test_what_there_is_not_does_not_compile(kit, tmp_path, statement, said):
    message = said_of(kit, tmp_path, BEFORE + "void f(int n) {\n" + statement + "\n}\n")
    line = BEFORE.count("\n") + 2
    assert f"missing.cu:{line}:" in message
    assert f"the emulated GPU has {said}" in message
    assert "DEVICE=cuda" in message


@pytest.mark.parametrize("statement, said", MISSING_ON_DEVICE)
@pytest.mark.parametrize("kind", ["__global__ void", "static __device__ void"])
def test_what_kernels_have_not_does_not_compile_in_them(kit, tmp_path, kind, statement, said):
    text = f"{BEFORE}{kind} f(int n) {{\n{statement}\n}}\n"
    message = said_of(kit, tmp_path, text)
    assert f"missing.cu:{BEFORE.count(chr(10)) + 2}:" in message
    assert f"the emulated GPU has {said}" in message


def test_a_part_for_real_gpus_is_left_out(kit, tmp_path):
    parts = [statement for statement, _ in MISSING + MISSING_ON_DEVICE]
    text = "\n#ifndef __CUDA_EMULATOR__\n" + "\n".join(parts) + "\n#endif\n"
    assert said_of(kit, tmp_path, BEFORE + "__global__ void f(int n) {" + text + "}\n") == ""


def test_host_code_may_have_assembler(kit, tmp_path):
    assert said_of(kit, tmp_path, 'int main() { asm volatile(""); }\n') == ""


@pytest.mark.parametrize(
    "header, said",
    [("nccl.h", "no NCCL"), ("curand_kernel.h", "no cuRAND"), ("cub/cub.cuh", "no CUB")],
)
def test_a_header_of_what_there_is_not_says_so(kit, tmp_path, header, said):
    message = said_of(kit, tmp_path, f"\n#include <{header}>\n")
    assert "missing.cu:2" in message
    assert f"the emulated GPU has {said} ({header}); hint: " in message


def test_a_barrier_of_a_grid_does_not_compile(kit, tmp_path):
    text = "#include <cooperative_groups.h>\n__global__ void k() {\n"
    message = said_of(kit, tmp_path, text + "cooperative_groups::this_grid().sync();\n}\n")
    assert "missing.cu:3:" in message
    assert "no barrier of a whole grid (grid_group::sync); hint: end the kernel there" in message


def test_null_reaches_kernels_through_a_macro(kit, tmp_path):
    macro = "#define RUN(kernel, ...) kernel<<<1, 2>>>(__VA_ARGS__)\n"
    assert said_of(kit, tmp_path, BEFORE + macro + "void f() { RUN(k, NULL, 3); }\n") == ""


def test_local_headers_are_part_of_the_source(kit, tmp_path):
    (tmp_path / "src/inner").mkdir(parents=True)
    (tmp_path / "src/a.cu").write_text('#include "inner/b.cuh"\nvoid f() { g(0); }\n')
    (tmp_path / "src/inner/b.cuh").write_text('#pragma once\n#include "c.h"\n#include "a.h"\n')
    text = "__global__ void k(int* p) {\n __shared__ int s; s = 1; p[0] = s; }\n"
    text += "inline void g(int* p) { k<<<1, 1>>>(p); }\n"
    (tmp_path / "src/inner/c.h").write_text("#pragma once\n" + text)
    (tmp_path / "src/inner/a.h").write_text('#include "./c.h"\n#include "./b.cuh"\n')
    done = kit.emucc("-MMD", "-c", tmp_path / "src/a.cu", "-o", tmp_path / "a.o")
    assert (done.returncode, done.stderr) == (0, "")
    rules = (tmp_path / "a.d").read_text()
    for name in ("inner/b.cuh", "inner/c.h", "inner/a.h"):
        assert f" {tmp_path}/src/{name}" in rules


def test_an_error_in_a_local_header_has_its_line(kit, tmp_path):
    (tmp_path / "a.cu").write_text('#include "b.cuh"\n')
    (tmp_path / "b.cuh").write_text("\nvoid f() { k<<<1, 2>>>; }\n")
    done = kit.emucc("-c", tmp_path / "a.cu", "-o", tmp_path / "a.o")
    assert done.returncode == 1
    assert done.stderr.startswith(f"{tmp_path}/b.cuh:2: error: launch of `k`:")


def test_a_line_that_says_it_is_the_first_hides_nothing_before_it(kit, tmp_path):
    (tmp_path / "b.cuh").write_text("struct Pair { int a, b; };\n")
    (tmp_path / "a.cu").write_text('#include "b.cuh"\n#line 1\nint wrong() { return Pair{}.c; }\n')
    done = kit.emucc("-c", tmp_path / "a.cu", "-o", tmp_path / "a.o")
    assert done.returncode == 1
    assert re.search(r"a\.cu:1:.*‘struct Pair’ has no member named ‘c’", done.stderr)


def test_a_kernel_called_like_a_function_is_refused(kit, tmp_path):
    (tmp_path / "a.cu").write_text(BEFORE + "int main() {\n  k(p, 3);\n}\n")
    done = kit.emucc("-c", tmp_path / "a.cu", "-o", tmp_path / "a.o")
    assert done.returncode == 1
    assert re.search(r"a\.cu:10:.*\bkernel `k` is called like a function; hint: k<<<", done.stderr)


def test_a_kernel_called_through_a_pointer_says_so(kit, tmp_path):
    text = "template <class K, class... A> void call(K kernel, A... a) { kernel(a...); }\n"
    text += "int main() { call(k, p, 3); printf(cudaGetErrorName(cudaGetLastError())); }\n"
    (tmp_path / "a.cu").write_text(BEFORE + text)
    done = kit.call(kit.link(kit.compile_kernels(tmp_path / "a.cu", tmp_path.name), tmp_path / "a"))
    assert done.stdout == "cudaErrorMissingConfiguration"
    assert done.stderr.startswith("emulated GPU: kernel k is called like a function; hint: k<<<")


@pytest.mark.parametrize("mode", [rewrite.THREADS, rewrite.LOOPS, rewrite.CHECKED])
def test_a_bracket_more_or_less_is_left_to_the_compiler(mode, many):
    text = (emulator_kit.PROGRAMS / "launches.cu").read_text()
    for found in list(re.finditer(r"[][(){}]", text))[:: many(7, 43)]:
        for bracket in ("", "(", "]"):
            broken = text[: found.start()] + bracket + text[found.end() :]
            with contextlib.suppress(SourceError):
                rewrite.rewrite(broken, "a.cu", mode)


CASTS = "template <int N> struct C { typedef int type; };\n"
CASTS += "__global__ void k(int n, int* o) { int x = %s; o[threadIdx.x] = x; }\n"


OPEN = ["static_cast<C<int{3}>::type>(n)", "static_cast<int(n)", "static_cast<", "static_cast n",
        "static_cast<int", "(int(n"]  # fmt: skip


@pytest.mark.parametrize("cast", OPEN)
def test_a_cast_that_is_not_understood_holds_nobody_up(cast):
    # In a process of its own: a pass that hangs in it can be ended.
    code = "import rewrite, sys; rewrite.rewrite(sys.argv[1], 'a.cu', rewrite.LOOPS)"
    folder = os.path.dirname(rewrite.__file__)
    done = subprocess.run([sys.executable, "-c", code, CASTS % cast], cwd=folder, timeout=600)
    assert done.returncode == 0


ENDS = """
namespace a { __device__ int f(int n = 3) { return n; } }
typedef float real; using whole = int; enum class Kind : int { one, two }; const int count = 3;
template <template <class> class Op, class T> __global__ void t(T* p) { Op<T> op; p[0] = op(1); }
struct S { int n; __device__ operator int() const { return n; } } s;
__global__ void __launch_bounds__(64) k(int* p) {
  __shared__ int x[32]; extern __shared__ float y[];
  for (int i = 0; i < 3; ++i) { x[i] = static_cast<int>(p[i]); __syncthreads(); }
  switch (p[0]) { case 1: break; default: p[1] = a::f(x[0]) + count; }
}
void g(int* p) { k(p); k<<<1, 2>>>(p); auto h = [=](int n) { return n; }; }
using namespace a; using a::f; using
"""


@pytest.mark.parametrize("mode", [rewrite.THREADS, rewrite.LOOPS, rewrite.CHECKED])
def test_a_source_may_end_anywhere(mode):
    for end in (found.end() for found in re.finditer(r"\w+|\S", ENDS)):
        with contextlib.suppress(SourceError):
            rewrite.rewrite(ENDS[:end], "a.cu", mode)
