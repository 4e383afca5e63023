"""emucc.py takes the options of nvcc: with their meaning, in silence, or with one clear line."""

import re
import subprocess

import configure
import pytest

import kit as emulator_kit  # noqa: F401  (the way to the emulator)
from command_line import Options, Told, UsageError
from nvcc_options import OPTIONS

SOURCE = "__global__ void k() {}\nint main() { k<<<1, 1>>>(); }\n"


# Options whose values nvcc's own list leaves out.
UNSAID = ("dependency-output", "MF", "qpp-config")


def test_every_option_of_nvcc_is_known():
    nvcc = configure.find_nvcc()
    if nvcc is None:
        pytest.skip("there is no nvcc here")
    said = subprocess.run([nvcc, "--help"], capture_output=True, text=True, timeout=600).stdout
    rows = re.findall(r"^--(\S+)( [<{\[e]\S*)?.*?(?:\(-(\S+)\))?\s*$", said, re.M)
    assert len(rows) > 110
    for long, value, short in rows:
        for name in filter(None, (long, short)):
            assert name in OPTIONS, name
            assert OPTIONS[name].has_value == (bool(value) or name in UNSAID), name


# What may stand in a Makefile, and changes nothing.
SILENT = """
--ftz=true|-ftz true|--prec-div=false|-prec-sqrt=false|--fmad=false|-fmad false|--use_fast_math
-use_fast_math|-allow-unsupported-compiler|-Werror=cross-execution-space-call|-lineinfo|-lcudart
-Werror all-warnings|-Xptxas -v,-O3|-Xptxas=-v|--ptxas-options=-v|-rdc=false|-arch=sm_70|-t 4|-t4
-arch sm_70|-gencode arch=compute_70,code=sm_70|-gencode=arch=compute_70,code=sm_70|--threads 0
-code=sm_70|-maxrregcount=32|--maxrregcount 32|-Wno-deprecated-gpu-targets|-diag-suppress 177
-res-usage|--resource-usage|-m64|-dlto|-restrict|--cudart=shared|-cudart shared|-Xnvlink -v
-Xcudafe --diag_suppress=2361|-extra-device-vectorization|--split-compile=0|-objtemp|-lcurand
"""


@pytest.mark.parametrize("words", re.split(r"[|\n]", SILENT.strip()))
def test_what_only_concerns_a_real_gpu_changes_nothing(words):
    options, plain = Options([*words.split(), "a.cu"]), Options(["a.cu"])
    assert vars(options) == vars(plain)


MEANT = [
    ("-I=a,b", ["-I", "a", "-I", "b"]),
    ("-Ia", ["-I", "a"]),
    ("--include-path a", ["-I", "a"]),
    ("-D A=1,B", ["-D", "A=1", "-D", "B"]),
    ("-DA=1", ["-D", "A=1"]),
    ("-O 3", ["-O3"]),
    ("-std c++14", ["-std=c++14"]),
    ("--debug", ["-g"]),
    ("-Xcompiler -Wall,-O3", ["-Wall", "-O3"]),
    ("--compiler-options=-Wall", ["-Wall"]),
    ("-Werror=reorder,all-warnings", ["-Werror=reorder"]),
    ("-Werror=unused", ["-Werror=unused"]),
    ("-G", ["-D__CUDACC_DEBUG__"]),
    ("-rdc=true", ["-D__CUDACC_RDC__"]),
    ("--extended-lambda", ["-D__CUDACC_EXTENDED_LAMBDA__"]),
    ("--expt-relaxed-constexpr", ["-D__CUDACC_RELAXED_CONSTEXPR__"]),
    ("--default-stream per-thread", ["-DCUDA_API_PER_THREAD_DEFAULT_STREAM=1"]),
    ("-march=native", ["-march=native"]),
    ("-pthread", ["-pthread"]),
    ("-Wreorder", ["-Wreorder"]),
]


@pytest.mark.parametrize("words, flags", MEANT)
def test_options_for_the_compiler_reach_it(words, flags):
    assert Options([*words.split(), "a.cu"]).flags == flags


def test_the_shell_would_split_what_xcompiler_has():
    assert Options(["-Xcompiler", "-Wall -Wextra", "a.cu"]).flags == ["-Wall", "-Wextra"]


@pytest.mark.parametrize("word", ["-ptx", "--cubin", "-fatbin", "-sanitize=memcheck", "--clean"])
def test_what_there_is_not_is_refused_in_one_line(kit, tmp_path, word):
    (tmp_path / "a.cu").write_text(SOURCE)
    done = kit.emucc(word, tmp_path / "a.cu")
    assert done.returncode == 2
    assert re.fullmatch(rf"emucc: {word}: the emulated GPU .*; hint: .*\n", done.stderr)


def test_the_version_is_told_as_nvcc_has_it():
    with pytest.raises(Told, match=r"release 13\.0"):
        Options(["--version"])
    with pytest.raises(UsageError, match="-o needs a value"):
        Options(["a.cu", "-o"])


def test_files_are_compiled_apart_and_linked_as_by_nvcc(kit, tmp_path):
    one, two = tmp_path / "one.cu", tmp_path / "two.cu"
    one.write_text("""#include <cstdio>
__device__ int twice(int);
__global__ void k(int* p) { *p = twice(21); }
int main() {
  int *p, v;
  cudaMalloc(&p, sizeof v);
  k<<<1, 1>>>(p);
  cudaMemcpy(&v, p, sizeof v, cudaMemcpyDeviceToHost);
  std::printf("%d\\n", v);
}
""")
    two.write_text("__device__ int twice(int x) { return 2 * x; }\n")
    objects = [tmp_path / "one.o", tmp_path / "two.o"]
    linked, archive = tmp_path / "linked.o", tmp_path / "libboth.a"
    for words in (
        ["-dc", "-odir", tmp_path, one, two],
        ["-dlink", *objects, "-o", linked],
        ["-lib", *objects, linked, "-o", archive],
    ):
        done = kit.emucc(*words)
        assert (done.returncode, done.stderr) == (0, "")
    for parts in ([*objects, linked], [archive]):
        flags = [word for part in parts for word in ("-Wl,--whole-archive", part)]
        program = tmp_path / "program"
        done = kit.call(*kit.cxx, *flags, "-Wl,--no-whole-archive", kit.library, "-o", program,
                        f"-Wl,-rpath,{kit.folder}", *kit.libraries)  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert kit.call(program).stdout == "42\n"


def test_dependencies_alone_are_printed(kit, tmp_path):
    (tmp_path / "a.cu").write_text('#include "own.h"\n' + SOURCE)
    (tmp_path / "own.h").write_text("#pragma once\n")
    done = kit.emucc("-MM", tmp_path / "a.cu")
    assert re.match(r"a\.o:[\s\\]*\S*a\.cu", done.stdout)  # a long path stands on a line of its own
    assert "own.h" in done.stdout
    done = kit.emucc("-E", tmp_path / "a.cu", "-o", tmp_path / "a.ii")
    assert "__global__ void k()" in (tmp_path / "a.ii").read_text()


def test_options_stand_in_a_file(tmp_path):
    (tmp_path / "options").write_text("-DA -lm\n")
    options = Options(["-optf", str(tmp_path / "options"), "a.cu"])
    assert (options.flags, options.links) == (["-D", "A"], ["-lm"])
