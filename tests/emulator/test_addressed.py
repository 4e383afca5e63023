"""Whose addresses a compiler says are taken, in GCC's words and in clang's."""

import shutil
import subprocess

import pytest

from compiler_facts import clang_tree, gimple
from compiler_facts.addressed import PROBE, addressed

HEAD = """
namespace emulator { template <int> struct KernelOf {}; }
using emulator::KernelOf;
typedef int& R;
struct float2 { float x, y; };
struct Pair { int x, y; };
struct Holder { int& held; };
struct Keeper { int* kept; Keeper(int& to) : kept(&to) {} };
struct Copied { int* kept; Copied() {} Copied(const Copied& other); };
int* keep;
void take(int&);
void give(int);
template <typename T> void deduced(T&& value) { keep = &value; }
"""
FUNCTION = "void f(KernelOf<%d> emulator_number_%d, int w, int i) { %s }\n"
INSTANCE = "template <typename T> void t(KernelOf<%d> emulator_number_%d, T w, T i) { %s }\n"
# What is done with a variable `v`.
TAKEN = (
    "int v = w; keep = &v;",
    "int v = w; keep = &(v >>= 1);",
    "int v = w; keep = &++v;",
    "int v = w; keep = &(give(w), v);",
    "int v = w; keep = &(w ? v : i);",
    "int v = w; R r = v; r = 2;",
    "int v = w; take(v);",
    "int v = w; take(static_cast<R>(v));",
    "int v = w; deduced(v);",
    "int v = w; Holder{v}.held = 1;",
    "int v = w; Keeper k(v); give(*k.kept);",
    "int v = w; [&] { keep = &v; }();",
    "int v = w; [&r = v] { keep = &r; }();",
    "int v = w; [&](auto n) { keep = &v + n; }(1);",
    "int v = w; [&] { [&] { take(v); }(); }();",
    "int v[4] = {w}; keep = v;",
    "int v[4] = {w}; take(v[i]);",
    "int v[4] = {w}; for (int& e : v) e = 1;",
    "Pair v = {w, i}; keep = &v.x;",
    "Pair v = {w, i}; auto& [a, b] = v; a = b;",
    "Copied v; Copied other = v; keep = other.kept;",
    "float2 v = {1, 2}; const float2& other = v; give(other.x);",
    "float2 v = {1, 2}; float2& other = v = float2{3, 4}; other.x = 3;",
    "const int v = w; const_cast<int&>(v) = i;",
    "const int v = w; (int&)v += i;",
    "const int v = w; [&] { const_cast<R>(v)++; }();",
)
HARMLESS = (
    "int v = w; give(v);",
    "int v = w; v += i; v = -v; ++v; w = v--; give(w ? v : i);",
    "int v = w; give((v, i)); (void)v; give(sizeof(v));",
    "int v = w; for (; v < i; ++v) give(v);",
    "int v = w; switch (v) { case 1: v = 2; }",
    "int v = w; [&] { give(v); }();",
    "int* v = &w; *v = 1; v[1] = 2; keep = v;",
    "Pair v = {w, i}; v.x += v.y; give(v.x);",
    "float2 v = {1, 2}; float2 other = v; v = other; other = v; give(other.x);",
    "const int v = w; give(v);",
)
# Harmless, too, but what GCC writes of it looks as if it were not.
CLANG_KNOWS = (
    "int v = w; [&] { [&](auto n) { give(v + n); }(1); }();",
    "int v[4] = {w}; v[i] = v[1] + 1; v[2]++; give(v[i]);",
    "int v[4][2] = {{w}}; v[i][1] += v[1][i];",
)
CASES = TAKEN + HARMLESS + CLANG_KNOWS


def dump_of(compiler, reader, source, folder):
    """What a compiler says of a source."""
    path, dump = folder / "source.cc", folder / "dump"
    path.write_text(source)
    words = [compiler, "-std=c++17", "-w"]
    if reader is gimple:
        words += [f"-fdump-tree-gimple={dump}", "-c", "-o", folder / "source.o"]
    else:
        words += clang_tree.OPTIONS
    done = subprocess.run([*words, path], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return dump.read_text() if reader is gimple else done.stdout


@pytest.fixture(scope="module", params=["g++", "clang++"])
def asked(request, tmp_path_factory):
    """The cases in which a compiler says that the address of `v` is taken."""
    if shutil.which(request.param) is None:
        pytest.skip(f"no {request.param}")
    reader, source = {"g++": gimple, "clang++": clang_tree}[request.param], HEAD
    cases = dict(enumerate(CASES, 1))
    for number, case in cases.items():
        other = number + 100
        source += FUNCTION % (number, number, case) + INSTANCE % (other, other, case)
        source += f"void c(KernelOf<{number}>) {{ t(KernelOf<{other}>(), 1, 2); }}\n"
    dump = dump_of(request.param, reader, source + PROBE, tmp_path_factory.mktemp("asked"))
    believed = {number + way: {"v", "n"} for number in cases for way in (0, 100)}
    found = addressed(dump, believed, reader.seen)
    assert all(names == {"v"} for names in found.values())
    return request.param, {(cases[number % 100], number > 100) for number in found}


@pytest.mark.parametrize("is_instance", [False, True], ids=["function", "instance"])
@pytest.mark.parametrize("case", CASES)
def test_whether_an_address_is_taken(asked, case, is_instance):
    """Each case is told as it is, in a function and in an instance of a template."""
    compiler, found = asked
    if compiler == "clang++" or case not in CLANG_KNOWS:
        assert ((case, is_instance) in found) == (case in TAKEN)


@pytest.mark.parametrize("reader", [gimple, clang_tree])
def test_what_is_not_understood_is_refused(reader):
    """A dump in which the probe is not seen says nothing."""
    with pytest.raises(ValueError, match="not understood"):
        addressed("", {1: {"v"}}, reader.seen)
