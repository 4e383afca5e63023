"""What compiled kernels call of the system is read from their object file."""

import contextlib
import ctypes
import shlex
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from grader.building import symbols
from grader.building.harmless import declared
from grader.building.symbols import defined, reaching

KIT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(KIT / "emulator"))

import toolchain  # noqa: E402 (after the path to it)

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="reads ELF files")


def compiled(tmp_path, code):
    source, obj = tmp_path / "code.cc", tmp_path / "code.cu.o"
    source.write_text(code)
    command = [*shlex.split(toolchain.find_cxx()), "-O1", "-c", str(source), "-o", str(obj)]
    subprocess.run(command, check=True)
    return obj


@linux_only
def test_functions_that_reach_into_the_system_are_named(tmp_path):
    code = """
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>
int f(const char* name) { return open(name, O_RDONLY) + fork(); }
void* g(const char* name) { return dlsym(nullptr, name); }
"""
    assert reaching(compiled(tmp_path, code)) == ("dlsym", "fork", "open")


@linux_only
@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("#include <fcntl.h>\nint f() { return creat(__FILE__, 0); }", ["creat"]),
        ("#include <stdio.h>\nvoid f() { dprintf(1, __FILE__); }", ["dprintf"]),
        ("#include <wordexp.h>\nint f(wordexp_t* w) { return wordexp(__FILE__, w, 0); }",
         ["wordexp"]),
        ("#include <cstdlib>\nchar* f() { return std::getenv(__FILE__); }", ["getenv"]),
        ('extern "C" int _PyEval_Go();\nint f() { return _PyEval_Go(); }', ["_PyEval_Go"]),
        ('extern "C" int old(const char*, int);\nasm(".symver old, open@GLIBC_2.2.5");\n'
         "int f() { return old(__FILE__, 0); }", ["open"]),
        ("namespace emulator { int shuffle_seed(); }\nint f() { return emulator::shuffle_seed(); }",
         ["_ZN8emulator12shuffle_seedEv"]),
    ],
)  # fmt: skip
def test_what_honest_work_has_no_use_for_is_named(code, names, tmp_path):
    assert set(names) <= set(reaching(compiled(tmp_path, code), declared(KIT / "solution")))


@linux_only
def test_the_kit_s_headers_say_what_else_may_be_called(tmp_path):
    code = """
namespace emulator { struct Configuration { void take(); void hide(); }; }
extern "C" int DLSetLastError(const char*), emulator_lane(), of_another_file(int), write(int);
void take(emulator::Configuration& c) {
  c.take();
  write(DLSetLastError("") + emulator_lane() + of_another_file(1));
}
void hide(emulator::Configuration& c) { c.hide(); }
"""
    obj, own = compiled(tmp_path, code), declared(KIT / "solution")
    assert "write" in own  # a word of theirs, and yet the system's
    hidden = "_ZN8emulator13Configuration4hideEv"
    assert reaching(obj, own) == (hidden, "of_another_file", "write")
    assert reaching(obj, own | {"of_another_file"}) == (hidden, "write")


@linux_only
@pytest.mark.parametrize("kind", ["", ".type getenv, @object\n", ".type getenv, @function\n"])
def test_what_assembly_calls_no_function_is_one_where_it_lies_among_code(tmp_path, kind):
    lines = f".pushsection .text\n.globl getenv\n{kind}getenv: ret\n.popsection"
    with pytest.raises(symbols.Unusable, match=r"^it defines getenv, which the C library"):
        reaching(compiled(tmp_path, f'asm(R"({lines})");'))


@linux_only
def test_a_variable_may_have_the_name_of_a_function_that_nobody_calls(tmp_path):
    assert reaching(compiled(tmp_path, "int times = 3, nice, stat[5];")) == ()


@linux_only
@pytest.mark.parametrize("name", ["memmove", "clock_gettime", "cudaEventElapsedTime", "cuInit"])
@pytest.mark.parametrize("weak", ["", "__attribute__((weak)) "])
def test_what_a_library_has_is_not_to_be_defined(tmp_path, name, weak):
    code = f'extern "C" {weak}int {name}(int a) {{ return a; }}\nint own() {{ return {name}(3); }}'
    obj = compiled(tmp_path, code.replace("memmove(int a)", "memmove(int a, int = 0)"))
    with pytest.raises(symbols.Unusable, match=rf"^it defines {name}, which the C library"):
        reaching(obj)


@linux_only
def test_names_of_ones_own_may_be_defined(tmp_path):
    code = """
#include <cmath>
#include <vector>
static int memcmp(int a) { return a; }
extern "C" int DLGpuRelu(int a) { return memcmp(a); }
extern "C" int cudacheck(int a) { return a; }
namespace mine { int write(int a) { return a; } }
int cudaMemcpy(std::vector<float> values) { return std::sqrt(values[0]); }
int main() { return 0; }
"""
    assert reaching(compiled(tmp_path, code)) == ()


@linux_only
def test_what_this_process_has_loaded_takes_no_names(tmp_path):
    obj = compiled(tmp_path, 'extern "C" int of_another_submission(int a) { return a; }')
    library = tmp_path / "loaded.so"
    command = [*shlex.split(toolchain.find_cxx()), "-shared", "-fPIC", "-x", "c++", "-"]
    code = b'extern "C" int of_another_submission(int a) { return -a; }'
    subprocess.run([*command, "-o", str(library)], input=code, check=True)
    ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    assert reaching(obj) == ()


@linux_only
def test_a_file_is_opened_by_other_names_too(tmp_path):
    code = """
#include <cstdio>
#include <fstream>
void f() { std::fclose(std::fopen("/proc/self/mem", "w")); }
void g() { std::fstream("/proc/self/mem") << 1; }
"""
    names = reaching(compiled(tmp_path, code))
    assert "fopen" in names
    assert any("fstream" in name or "filebuf" in name for name in names)


@linux_only
def test_what_honest_kernels_call_is_not_named(tmp_path):
    code = """
#include <algorithm>
#include <cassert>
#include <chrono>
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iomanip>
#include <iostream>
#include <map>
#include <mutex>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>
void system_of_mine(int);
std::mutex mutex;
std::once_flag once;
std::map<std::string, int> all;
thread_local std::string last;
void f(std::vector<float>& x) {
  if (x.empty()) exit(1);
  assert(x.size() > 3 && std::isfinite(x[0]));
  std::cerr << std::to_string(std::sqrt(x[0])) << std::setw(3) << std::endl;
  std::printf("%f", x[0]);
  std::fprintf(stderr, "%zu", x.size());
  std::fflush(stdout);
  system_of_mine(1);
  std::lock_guard<std::mutex> lock(mutex);
  std::call_once(once, [] { std::puts("once"); });
  std::ostringstream text;
  text << x[0] << std::chrono::steady_clock::now().time_since_epoch().count();
  last = text.str();
  ++all[last];
  std::thread([] { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }).join();
  std::unordered_map<int, std::function<float(float)>> table{{1, [](float v) { return v; }}};
  std::mt19937 random{std::random_device()()};
  std::normal_distribution<float> normal;
  x[0] = table.at(1)(normal(random)) + std::tgamma(x[1]) + std::abs(std::complex<float>(x[2]));
  x[1] = std::strtof(std::getline(std::istringstream("1") >> last, last) ? "1" : "2", nullptr);
  x[2] = static_cast<float>(static_cast<unsigned __int128>(x[2]) / 7 % std::rand());
  std::sort(x.begin(), x.end());
  std::qsort(x.data(), x.size(), 4, [](const void* a, const void* b) { return memcmp(a, b, 4); });
  void* memory = std::aligned_alloc(64, 64);
  std::memset(memory, 0, 64);
  std::free(memory);
  try {
    if (clock() == time(nullptr)) throw std::runtime_error("no");
  } catch (const std::exception& error) {
    std::cout << error.what();
  }
}
"""
    assert reaching(compiled(tmp_path, code)) == ()


@pytest.mark.parametrize(
    "content", [b"\x7fELF", b"\x7fELF" + bytes(200), b"\x7fELF\x02\x01\x01" * 99]
)
def test_a_broken_object_file_is_an_error_in_words(tmp_path, content):
    (tmp_path / "x.o").write_bytes(content)
    with pytest.raises(symbols.Unusable, match=r"x\.o can't be read"):
        reaching(tmp_path / "x.o")


@linux_only
def test_hundreds_of_thousands_of_symbols_are_read_in_seconds(tmp_path):
    lines = "\n".join(f".globl a{n}\n.set a{n}, {n}" for n in range(300_000))
    code = "#include <unistd.h>\nint f() { return fork(); }\n"
    obj = compiled(tmp_path, f'{code}asm(R"({lines})");')
    started = time.process_time()
    assert reaching(obj) == ("fork",)
    assert time.process_time() - started < 2


@linux_only
def test_more_symbols_or_functions_than_kernels_have_are_an_error_in_words(tmp_path, monkeypatch):
    obj = compiled(tmp_path, "int f(), g(), h(); int all() { return f() + g() + h(); }")
    monkeypatch.setattr(symbols, "_MOST_NAMES", 3)
    with pytest.raises(symbols.Unusable, match="calls or defines more than 3 functions"):
        reaching(obj)
    monkeypatch.setattr(symbols, "_MOST_SYMBOLS", 5)
    with pytest.raises(symbols.Unusable, match="has more than 5 symbols"):
        reaching(obj)


@linux_only
def test_an_odd_object_file_is_read_or_refused_soon(tmp_path):
    whole = compiled(tmp_path, "int f(); int g() { return f(); }").read_bytes()
    random, odd = np.random.default_rng(3), tmp_path / "odd.o"
    started = time.process_time()
    for number in range(400):
        data = bytearray(whole)
        first = 0 if number % 2 else len(data) - 64 * 12  # the header, or the table of sections
        for place in random.integers(0, 64 if number % 2 else 64 * 12, 3):
            data[first + place] = random.choice([0, 1, 2, 11, 127, 128, 255])
        odd.write_bytes(data)
        with contextlib.suppress(ValueError):
            reaching(odd)
    assert time.process_time() - started < 20


def test_an_object_file_of_another_system_says_nothing(tmp_path):
    (tmp_path / "x.o").write_bytes(b"\xcf\xfa\xed\xfe" + bytes(100))
    assert reaching(tmp_path / "x.o") == ()
    assert defined(tmp_path / "x.o") == set()
