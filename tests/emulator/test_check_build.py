"""What the reports of the checked build rest on: lines of addresses, names of parameters."""

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rewrite
import toolchain
from cuda_source.tokens import Tokens
from findings.source_lines import Place, Places
from instrument.parameter_names import name_parameters
from instrument.thread_ends import show_ends
from instrument.vector_copies import show_copies

KERNEL = """\
__global__ void add(int n, const float *a, float *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + 1;
}
"""


# --- places --------------------------------------------------------------------------------------

HEADER = """\
#pragma once
extern "C" long here();
inline __attribute__((always_inline)) long in_header() {
  long offset = here();
  asm volatile("");
  return offset;
}
"""
LIBRARY = """\
#include <dlfcn.h>

#include "here.h"
extern "C" __attribute__((noinline)) long here() {
  Dl_info info;
  char *address = static_cast<char *>(__builtin_return_address(0));
  dladdr(address, &info);
  return address - static_cast<char *>(info.dli_fbase);
}
#line 100 "student.cu"
extern "C" long plain() {
  long offset = here();
  asm volatile("");
  return offset;
}
extern "C" long inlined() {
  asm volatile("");
  return in_header() + 0;
}
static inline __attribute__((always_inline)) long own() {
  asm volatile("");
  return in_header() + 0;
}
extern "C" long nested() {
  asm volatile("");
  return own() + 0;
}
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ELF alone")
@pytest.mark.parametrize("dwarf", ["-gdwarf-4", "-gdwarf-5"])
@pytest.mark.parametrize("cxx", ["g++", "clang++"])
def test_an_address_becomes_a_line(tmp_path, cxx, dwarf):
    if shutil.which(cxx) is None:
        pytest.skip(f"there is no {cxx}")
    headers = tmp_path / "emulator" / "include"
    headers.mkdir(parents=True)
    (headers / "here.h").write_text(HEADER)
    (tmp_path / "lib.cc").write_text(LIBRARY)
    command = [cxx, dwarf, "-O1", "-fPIC", "-shared", "-Iemulator/include", "lib.cc"]
    subprocess.run([*command, "-o", "lib.so", "-ldl"], cwd=tmp_path, check=True)
    path = str(tmp_path / "lib.so")
    library, places = ctypes.CDLL(path), Places()
    student = str(tmp_path / "student.cu")
    for function, line in ((library.plain, 101), (library.inlined, 107)):
        assert places.find({"module": path, "place": function()}) == Place(student, line)
    site = {"module": path, "place": library.nested()}
    assert places.frames(site) == [Place(student, 111), Place(student, 115)]
    call = {"module": path, "place": library.plain()}
    assert places.frames(site, [call])[2:] == [Place(student, 101)]
    assert places.frames({"file": "a.cu", "line": 3, **site}) == [
        Place("a.cu", 3),
        Place(student, 115),
    ]
    assert places.find({"module": path, "place": -1}) is None
    assert places.find({"module": path, "place": 1}) is None


@pytest.mark.skipif(sys.platform != "linux", reason="ELF alone")
def test_a_program_at_a_fixed_address_has_lines(tmp_path):
    main = '#include <cstdio>\nint main() { std::printf("%ld", plain()); }\n'
    (tmp_path / "emulator/include").mkdir(parents=True)
    (tmp_path / "emulator/include/here.h").write_text(HEADER)
    (tmp_path / "main.cc").write_text(LIBRARY + main)
    command = ["g++", "-g", "-no-pie", "-fno-pie", "-Iemulator/include", "main.cc", "-o", "main"]
    if subprocess.run([*command, "-ldl"], cwd=tmp_path, capture_output=True).returncode:
        pytest.skip("this compiler makes no such program")
    path = str(tmp_path / "main")
    place = int(subprocess.run([path], capture_output=True, text=True, check=True).stdout)
    found = Places().find({"module": path, "place": place})
    assert found == Place(str(tmp_path / "student.cu"), 101)


def test_without_pyelftools_places_are_unknown(monkeypatch):
    monkeypatch.setattr("findings.source_lines.ELFFile", None)
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert Places().find({"module": sys.executable, "place": 4096}) is None


# --- the checked build ---------------------------------------------------------------------------


def names(source):
    """What is said behind the kernels of a source."""
    return [edit.text for edit in name_parameters(Tokens(source))]


def test_parameter_names_stand_behind_the_kernel():
    behind = ' static const ::emulator::ParameterNames emulator_parameters_1("add", "n,a,out");'
    checked, _ = rewrite.rewrite(KERNEL, "add.cu", rewrite.CHECKED)
    assert checked.endswith("::emulator_kernel_ends();}" + behind + "\n")
    assert behind not in rewrite.rewrite(KERNEL, "add.cu", rewrite.LOOPS)[0]


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ("", ""),
        ("void", ""),
        ("int", ""),
        ("int, float *", ","),
        ("unsigned int n, const float *__restrict__ a", "n,a"),
        ("const unsigned long long", ""),
        ("const float a[], int n = 3", "a,n"),
        ("float (*tile)[32], float (&row)[8]", "tile,row"),
        ("std::size_t, pair<int, float> p, T::x", ",p,"),
        ("struct S s, const T, T &&...rest", "s,,rest"),
    ],
)
def test_parameters_of_every_form(parameters, said):
    (line,) = names(f"__global__ void k({parameters}) {{}}")
    assert line.endswith(f'_1("k", "{said}");')


def test_only_kernels_of_namespaces_are_named():
    source = """
    namespace a { namespace { template <typename T> __global__ void one(T *x) { if (x) {} } } }
    extern "C" { __global__ void two(int y) {} }
    __global__ void declared(int z);
    struct S { static __global__ void member(int z) {} };
    __device__ int no_kernel(int z) { return z; }
    __global__ void __launch_bounds__(256) three(int y) {}
    """
    said = [line.partition("emulator_parameters_")[2] for line in names(source)]
    assert said == ['1("one", "x");', '2("two", "y");', '3("three", "y");']


def shown(source):
    """A source whose copied vectors are shown to clang, which are put in angle quotes here."""
    text = rewrite.apply_edits(source, show_copies(Tokens(source)))
    return text.replace("::emulator::whole(", "«")


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ("float4 v = in4[i];", "float4 v = «in4[i]);"),
        ("const int2 v = f(a, b);", "const int2 v = «f(a, b));"),
        ("float4 v = a, w = b;", "float4 v = a, w = b;"),
        ("float4 v = {1, 2, 3, 4};", "float4 v = {1, 2, 3, 4};"),
        ("void f(float4 v = zero);", "void f(float4 v = zero);"),
        ("const float4& v = in4[i];", "const float4& v = in4[i];"),
        ("*reinterpret_cast<float4*>(p) = v;", "«*reinterpret_cast<float4*>(p)) = v;"),
        ("f(reinterpret_cast<float4*>(p)[i]);", "f(«reinterpret_cast<float4*>(p)[i]));"),
        ("if (b) *reinterpret_cast<int2*>(p) = v;", "if (b) «*reinterpret_cast<int2*>(p)) = v;"),
        ("q = &*reinterpret_cast<float4*>(p);", "q = &*reinterpret_cast<float4*>(p);"),
        ("q = reinterpret_cast<float4*>(p);", "q = reinterpret_cast<float4*>(p);"),
        ("*reinterpret_cast<float4**>(p) = q;", "*reinterpret_cast<float4**>(p) = q;"),
    ],
)
def test_copied_vectors_go_through_a_reference(source, seen):
    assert shown(source) == seen


def test_the_ends_of_a_kernel_are_shown():
    source = """
    __global__ void k(int n) { if (n) return; if (n > 1) { return; } n = f([]() { return 1; }); }
    __global__ void last() { g(); return; }
    __device__ void no_kernel(int n) { if (n) return; }
    __global__ void declared(int n);
    """
    edited = rewrite.apply_edits(source, show_ends(Tokens(source)))
    plain = edited.replace(" ::emulator_kernel_returns()", "«").replace(
        "::emulator_kernel_ends()", "»"
    )
    assert "if (n) return«; if (n > 1) { return«; } n = f([]() { return 1; }); »;}" in plain
    assert "last() { g(); return »; »;}" in plain
    assert "no_kernel(int n) { if (n) return; }" in plain


def test_the_library_is_that_of_the_checked_build(tmp_path):
    shutil.copytree(Path(rewrite.__file__).parents[1] / "solution" / "python", tmp_path / "python")
    code = "import dlsys._base as b; print(b.find_lib_path()); b._LIB.x"
    env = dict(os.environ, DLSYS_CHECKED="1", PYTHONPATH=str(tmp_path / "python"))
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.stdout.strip().endswith("build/checked/lib/libc_runtime_api.so")
    assert "hint: run make checked" in done.stderr


@pytest.mark.skipif(not shutil.which("g++"), reason="there is no g++ here")
def test_copies_are_hooked_where_the_system_s_compiler_checks_their_sizes(tmp_path):
    source = tmp_path / "copies.cc"
    source.write_text(
        "#include <cstring>\nchar a[8];\nvoid f(char* b, long n) { memcpy(a, b, n); }\n"
    )
    compile_it = ["g++", "-O2", "-D_FORTIFY_SOURCE=2", "-S", "-o", "-", source]
    found = [
        subprocess.run([*compile_it, *flags], check=True, capture_output=True, text=True).stdout
        for flags in ([], toolchain.check_flags("g++").split())
    ]
    assert ["__memcpy_chk" in each for each in found] == [True, False]
