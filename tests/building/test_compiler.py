"""What compilers and linkers say becomes an error at the student's own line, or a sentence."""

import pytest

from grader.building.compiler_output import excerpt, first_error, last_step, readable

OWN = ("src/gpu_op.cu",)

GCC_TEMPLATE = """\
g++ -std=c++17 -O2 -c src/gpu_op.cc -o build/obj/emulated/gpu_op.o
In file included from /usr/include/c++/12/algorithm:61,
                 from src/gpu_op.cu:3:
/usr/include/c++/12/bits/stl_algo.h:4820:18:   required from ‘void std::sort(_RAIter, _RAIter)’
src/gpu_op.cu:504:40:   required from here
/usr/include/c++/12/bits/predefined_ops.h:45:23: error: no match for ‘operator<’
   45 |       { return *__it1 < *__it2; }
compilation terminated due to -Wfatal-errors.
make: *** [Makefile:85: build/obj/emulated/gpu_op.cu.o] Error 1
"""
CLANG_TEMPLATE = """\
/usr/include/c++/12/bits/predefined_ops.h:45:23: error: invalid operands to binary expression
src/gpu_op.cu:504:40: note: in instantiation of function template specialization requested here
"""
NVCC_TEMPLATE = """\
/usr/local/cuda/include/crt/a.h(30): error: no operator "<" matches these operands
          detected during instantiation of "void sort(T)" at line 504 of src/gpu_op.cu
1 error detected in the compilation of "src/gpu_op.cu".
"""
EMUCC = (
    'python3 emulator/emucc.py -ccbin "g++" -Wall --prelude build/obj/emulated/prelude.h -Isrc '
    "-MMD -MP --keep -c src/gpu_op.cu -o build/obj/emulated/gpu_op.cu.o\n"
)
GCC_LAUNCH = f"""\
python3 emulator/emucc.py -ccbin "g++" -Wall --prelude build/obj/emulated/prelude.h --precompile
{EMUCC}\
src/gpu_op.cu: In instantiation of ‘f()::<lambda(auto:1 ...)> [with auto:1 = {{int}}]’:
PLACE/emulator/launch.h:110:75:   required from ‘void f()’
src/gpu_op.cu:19:274:   required from here
src/gpu_op.cu:19:94: error: no matching function for call to ‘bad3(int&)’
compilation terminated due to -Wfatal-errors.
make: *** [Makefile:92: build/obj/emulated/gpu_op.cu.o] Error 1
"""
UNDEFINED = """\
g++ -shared -o build/lib/libc_runtime_api.so.new build/obj/emulated/gpu_op.cu.o
/usr/bin/ld: build/obj/emulated/gpu_op.cu.o: in function `f0(float*)':
gpu_op.cu.cc:(.text+0xa6): undefined reference to `ns::helper(float*, int)'
collect2: error: ld returned 1 exit status
"""
TWICE = """\
/usr/bin/ld: b.o: in function `helper(float*)':
b.cu:(.text+0x0): multiple definition of `helper(float*)'; a.o:a.cu:(.text+0x0): first defined here
"""


@pytest.mark.parametrize("output", [GCC_TEMPLATE, CLANG_TEMPLATE, NVCC_TEMPLATE])
def test_an_error_in_a_header_is_told_at_the_students_line_that_leads_there(output):
    error = first_error(output, OWN)
    assert (error.file, error.line) == ("src/gpu_op.cu", 504)
    assert error.found_in.endswith(("predefined_ops.h:45", "a.h:30"))
    assert str(error).startswith("src/gpu_op.cu:504: ")


def test_an_error_in_the_students_file_stays_where_it_is():
    output = "src/gpu_op.cu:9:3: warning: unused\nsrc/gpu_op.cu:41:3: error: expected ‘;’\n"
    assert str(first_error(output, OWN)) == "src/gpu_op.cu:41: expected ‘;’"
    nvcc = 'src/gpu_op.cu(41): error: expected a ";"\n'
    assert str(first_error(nvcc, OWN)) == 'src/gpu_op.cu:41: expected a ";"'


def test_an_error_that_no_line_of_the_student_leads_to_stays_where_it_is():
    error = first_error("src/dlarray.h:5:1: error: unknown type name\n", OWN)
    assert str(error) == "src/dlarray.h:5: unknown type name"


def test_link_errors_are_told_in_words():
    assert str(first_error(UNDEFINED, OWN)).startswith(
        "`ns::helper(float*, int)` is called but not defined"
    )
    assert str(first_error(TWICE, OWN)) == "`helper(float*)` is defined twice"


def test_what_a_loader_misses_is_told_by_its_readable_name():
    said = "lib.so does not load: lib.so: undefined symbol: _ZN2ns6helperEPf; hint: run make again"
    assert str(first_error(said)).startswith("`ns::helper` is called but not defined")


def test_no_error_is_none():
    assert first_error("g++ -c a.cc\nbuilt build/lib/libc_runtime_api.so\n", OWN) is None


@pytest.mark.parametrize(
    ("symbol", "name"),
    [("_Z6helperPf", "helper"), ("_ZN1a1b4nameEv", "a::b::name"), ("plain", "plain"), ("_Z", "_Z")],
)
def test_symbols_become_names(symbol, name):
    assert readable(symbol) == name


def test_an_excerpt_leaves_out_commands_and_keeps_the_first_error():
    lines = excerpt(GCC_TEMPLATE + "x\n" * 100)
    assert len(lines) == 12
    assert any("no match for" in line for line in lines)
    assert not any(line.startswith(("g++", "make")) for line in lines)
    assert max(map(len, excerpt("a.cc:1:1: error: " + "x" * 9999))) == 300


def test_no_path_of_the_graders_machine_is_shown():
    output = GCC_LAUNCH.replace("PLACE", "/home/me/.cache/new-x1/emulator/include")
    error = first_error(output, OWN)
    assert str(error) == "src/gpu_op.cu:19: no matching function for call to ‘bad3(int&)’"
    shown = excerpt(output)
    assert "emulator/include/emulator/launch.h:110:75:   required from ‘void f()’" in shown
    assert not any("/home" in line for line in shown)
    assert not any("emucc.py" in line for line in shown)
    inside = output.replace("src/gpu_op.cu:19:94:", "/home/x1/emulator/include/a.h:1:2:")
    assert str(first_error(inside, OWN)).endswith("(in emulator/include/a.h:1)")


def test_the_last_step_of_make_is_named():
    compiling = "g++ -O2 -c src/a.cc -o a.o\n" + EMUCC + "note\n"
    assert last_step(compiling) == "compiling gpu_op.cu"
    assert last_step(compiling + "g++ -shared -o lib.so a.o\n") == "linking"
    assert last_step("") == ""
