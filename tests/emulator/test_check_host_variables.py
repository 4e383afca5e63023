"""The checked build tells variables of the host from those that kernels may use."""

from pathlib import Path

import pytest

import checked
from cuda_source.tokens import Tokens
from instrument.host_variables import tell_host_variables

SOURCE = Path(__file__).resolve().parent / "checked" / "host_variables.cu"
#: The comment at the end of the line of each bug; None if nothing is wrong.
CASES = {"by_name": "by name", "by_pointer": "by pointer", "by_new": "by pointer",
         "what_it_may": None}  # fmt: skip


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Gives kind, comment of the line and memory of what is found in a case."""
    kit = checked.CheckedKit(tmp_path_factory.mktemp("host_variables"))
    kit.build_library()
    cases = kit.cases(SOURCE)
    lines = SOURCE.read_text().split("\n")

    def run(case):
        findings = cases(case)
        return [(f.kind, lines[f.at.line - 1], f.memory) for f in findings]

    return run


@pytest.mark.parametrize("case", CASES)
def test_kernels_may_use_some_variables_and_not_others(found, case):
    findings = found(case)
    assert [kind for kind, _, _ in findings] == ["host pointer in kernel"] * (
        CASES[case] is not None
    )
    for _, line, memory in findings:
        assert line.endswith(f"// {CASES[case]}")
        assert memory is None or memory.space == "host"


@pytest.mark.parametrize(
    "source",
    [
        "static float x[1] = {0};", "int x;", "namespace { namespace n { float* x; } }",
        "std::vector<int> x = {1, 2};", "unsigned int x[3][4];", "int x{3};",
        'extern "C" { int x; }', "__global__ void k() {} int x = f(1, 2);",
    ],
)  # fmt: skip
def test_a_variable_of_the_host_is_told(source):
    (edit,) = tell_host_variables(Tokens(source, "a.cu"))
    assert "(__builtin_addressof(x), sizeof(x))" in edit.text
    assert source[edit.start - 1] == ";"


@pytest.mark.parametrize(
    "source",
    [
        "const int x = 3;", "static constexpr float x[] = {1};", "const char* x = 0;",
        "__device__ float x;", "float __device__ x;", "static __constant__ float x[3];",
        "__managed__ int x;", "extern int x;", "template <typename T> T x = 3;", "typedef int x;",
        "using x = int;", "struct x { int y; };", "class x;", "enum x { y };", "void x();",
        "int A::x = 3;", "int& x = y;", "int x, y;", "int (*x)(int);", "using namespace x;",
        "void f() { static int x = 3; int y; }", "struct f { int x; static int y; };",
        "auto x = [] __device__ (int i) { return i; };", "static_assert(1, \"\");", "int x[3", ";;",
    ],
)  # fmt: skip
def test_what_kernels_may_use_or_is_no_variable_is_not(source):
    assert tell_host_variables(Tokens(source, "a.cu")) == []
