"""What compiled kernels call of the system is read from their object file."""

import contextlib
import shlex
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from grader import symbols
from grader.symbols import reaching

KIT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(KIT / "solution"))

import configure  # noqa: E402 (after the path to it)

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="reads ELF files")


def compiled(tmp_path, code):
    source, obj = tmp_path / "code.cc", tmp_path / "code.cu.o"
    source.write_text(code)
    command = [*shlex.split(configure.find_cxx()), "-O1", "-c", str(source), "-o", str(obj)]
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
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>
void system_of_mine(int);
void f(std::vector<float>& x) {
  if (x.empty()) exit(1);
  std::cerr << std::to_string(std::sqrt(x[0]));
  std::printf("%f", x[0]);
  system_of_mine(1);
}
"""
    assert reaching(compiled(tmp_path, code)) == ()


@pytest.mark.parametrize(
    "content", [b"\x7fELF", b"\x7fELF" + bytes(200), b"\x7fELF\x02\x01\x01" * 99]
)
def test_a_broken_object_file_is_an_error_in_words(tmp_path, content):
    (tmp_path / "x.o").write_bytes(content)
    with pytest.raises(ValueError, match=r"x\.o can't be read"):
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
    with pytest.raises(ValueError, match="calls more than 3 functions"):
        reaching(obj)
    monkeypatch.setattr(symbols, "_MOST_SYMBOLS", 5)
    with pytest.raises(ValueError, match="has more than 5 symbols"):
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
