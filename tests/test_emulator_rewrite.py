"""The emulated GPU's source pass: every spelling of a launch, shared variables, errors."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent / "emulator"))

import kit as emulator_kit
import rewrite


@pytest.fixture(scope="session")
def kit(tmp_path_factory):
    """The library and all programs."""
    return emulator_kit.built(tmp_path_factory.getbasetemp() / "emulator")


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
    "\n#define RUN(statement) statement\nRUN(k<<<1, 2>>>(p, 3));",
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
    "#if 0\nk<<<1, 2\n it's __shared__ float x[3];\n#if 1\n#else\n#endif\n#endif\n",
    "#error don't <<<\n",
    '#include "a<<<b.h"\n',
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
    done = kit.rewrite(source, tmp_path / "spellings.cc")
    assert done.returncode == 0, done.stderr
    kit.compile(tmp_path / "spellings.cc", tmp_path / "s.o", "-O0", "-include", "cuda_runtime.h",
                "-Wno-unused-value")  # fmt: skip


@pytest.mark.parametrize("statement", SPELLINGS)
def test_launches_become_calls_on_the_same_lines(statement):
    text = body(statement)
    got = rewrite.rewrite(text, "a.cu")
    _, _, rest = got.partition('#line 1 "a.cu"\n')
    assert rest.count("\n") == text.count("\n")
    assert rest.count("::emulator::kernel(") == text.replace("/* >>> */", "").count(">>>")
    for old, new in zip(text.split("\n"), rest.split("\n"), strict=True):
        if "<<<" not in old and ">>>" not in old and not new.lstrip().startswith("::emulator"):
            assert old == new or "emulator" in new or "nullptr" in new


@pytest.mark.parametrize("text", UNTOUCHED)
def test_what_only_looks_like_a_launch_is_left_alone(text):
    assert rewrite.rewrite(text, "a.cu").partition('#line 1 "a.cu"\n')[2] == text


@pytest.mark.parametrize(
    "before, after",
    [
        ("extern __shared__ float s[];", " " * 18 + "float (&s)[] = EMULATOR_DYNAMIC_SHARED;"),
        ("__shared__ float a[4][5];", "           float (&a)[4][5] = EMULATOR_SHARED;"),
        ("__shared__ int a, b[2];",
         "           int &a = EMULATOR_SHARED, (&b)[2] = EMULATOR_SHARED;"),
        ("extern __shared__ __align__(16) T s[];",
         " " * 32 + "T (&s)[] = EMULATOR_DYNAMIC_SHARED;"),
        ("volatile __shared__ float w[64];",
         "volatile            float (&w)[64] = EMULATOR_SHARED;"),
        ("__shared__ X<float, 4> x;", "           X<float, 4> &x = EMULATOR_SHARED;"),
        ("__shared__ union { int i; float f; } u;",
         "           union { int i; float f; } &u = EMULATOR_SHARED;"),
    ],
)  # fmt: skip
def test_shared_variables_become_references(before, after):
    got = rewrite.rewrite(f"void k() {{ {before} }}", "a.cu").splitlines()[-1]
    assert got.split(" static_assert")[0].removesuffix(" }") == "void k() { " + after


def test_shared_variables_of_a_file_are_each_threads_own():
    got = rewrite.rewrite('extern "C" { namespace a { extern __shared__ int s[]; } }', "a.cu")
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
    done = kit.rewrite(source, tmp_path / "bad.cc")
    assert done.returncode == 1
    assert done.stderr.strip() == f"{source}:{said}"
    assert not (tmp_path / "bad.cc").exists()


def test_compiler_errors_name_the_students_file(kit, tmp_path):
    source = tmp_path / "typo.cu"
    source.write_text("__global__ void k(int *p) {\n  p[0] = undeclared;\n}\n")
    kit.rewrite(source, tmp_path / "typo.cc")
    done = kit.call(*kit.cxx, *kit.flags, "-include", "cuda_runtime.h", "-c", tmp_path / "typo.cc",
                    "-o", tmp_path / "typo.o")  # fmt: skip
    assert f"{source}:2:10: " in done.stderr
    assert "undeclared" in done.stderr


def test_too_much_static_shared_memory_does_not_compile(kit, tmp_path):
    source = tmp_path / "large.cu"
    source.write_text("__global__ void k() {\n  __shared__ float a[12289];\n  a[0] = 1;\n}\n")
    kit.rewrite(source, tmp_path / "large.cc")
    done = kit.call(*kit.cxx, *kit.flags, "-include", "cuda_runtime.h", "-c", tmp_path / "large.cc",
                    "-o", tmp_path / "large.o")  # fmt: skip
    assert f"{source}:2:" in done.stderr
    assert "48 KB of static shared memory" in done.stderr
