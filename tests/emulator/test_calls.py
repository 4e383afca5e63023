"""Calls between the host and the device are refused where nvcc refuses them, and nowhere else.

calls/*.cu are cases with nvcc's answers, calls/cases.py renews these.
"""

import re
import subprocess

import configure
import pytest

from calls.cases import FILES, RELAXED, STRICT, cases_of
from compiler_facts import host_library

# What a kernel may call for each function of a library that is refused.
STATEMENTS = {
    "rand": "p[0] = rand();", "srand": "srand(1);", "random": "p[0] = random();",
    "drand48": "p[0] = drand48();", "exit": "exit(1);", "abort": "abort();", "_Exit": "_Exit(1);",
    "fprintf": 'fprintf(stderr, "%d", p[0]);', "sprintf": 'sprintf(c, "%d", p[0]);',
    "snprintf": 'snprintf(c, 3, "%d", p[0]);', "fflush": "fflush(stdout);",
    "fopen": 'fopen("a", "r");', "strlen": "p[0] = strlen(c);",
    "strcmp": "p[0] = strcmp(c, c + 1);", "strcpy": "strcpy(c, c + 9);",
    "strcat": "strcat(c, c + 9);", "strncpy": "strncpy(c, c + 9, p[0]);",
    "strncmp": "p[0] = strncmp(c, c + 1, p[0]);", "atoi": "p[0] = atoi(c);",
    "atof": "p[0] = atof(c);", "strtol": "p[0] = strtol(c, nullptr, 10);",
    "getenv": 'p[0] = *getenv("A");', "system": "p[0] = system(c);",
    "time": "p[0] = time(nullptr);", "qsort": "qsort(p, 3, 4, nullptr);",
    "toupper": "p[0] = toupper(p[1]);",
    "std::sort": "std::sort(p, p + 3);",
    "std::swap": "std::swap(p[0], p[1]);", "std::fill": "std::fill(p, p + 3, p[4]);",
    "std::copy": "std::copy(p, p + 3, p + 4);", "std::reverse": "std::reverse(p, p + 3);",
    "std::accumulate": "p[0] = std::accumulate(p, p + 3, 0);",
    "std::iota": "std::iota(p, p + 3, 0);", "std::vector": "std::vector<int> v(p[0]);",
    "std::string": "std::string s(c);",
    "std::max": "p[0] = std::max(p[0], p[1]);", "std::min": "p[0] = std::min(p[0], p[1]);",
}  # fmt: skip
HEADERS = ["algorithm", "cstdio", "cstdlib", "cstring", "ctime", "numeric", "string", "vector"]


def refused_lines(kit, source, output, *words):
    """The lines of a source whose calls are refused, after each of which a hint must stand."""
    done = kit.emucc("-w", "-c", source, "-o", output, *words)
    said = [line for line in done.stderr.splitlines() if " error: " in line]
    assert bool(said) == bool(done.returncode), done.stderr
    for line in said:
        assert re.search(r":\d+: error: the \w+ `.*`, which .* runs, calls `.*; hint: ", line), line
    return [int(re.search(r":(\d+): error: ", line).group(1)) for line in said]


@pytest.mark.parametrize("words", [[], [RELAXED], ["--checked"]], ids=str)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_calls_are_refused_as_by_nvcc(kit, tmp_path, path, words):
    lines, cases = refused_lines(kit, path, tmp_path / "a.o", *words), cases_of(path)
    refused = {case.title for case in cases if set(case.lines) & set(lines)}
    assert sum(len(set(case.lines) & set(lines)) for case in cases) == len(set(lines))
    wanted = {case.title for case in cases if case.is_refused(RELAXED in words)}
    missed = {case.title for case in cases if case.is_missed}
    assert refused == wanted - missed


def test_there_are_cases_of_each_kind():
    cases = [case for path in FILES for case in cases_of(path)]
    assert len(cases) == len({case.title for case in cases}) > 100
    assert len([case for case in cases if not case.is_refused()]) > 40
    assert len([case for case in cases if case.is_refused() and not case.is_missed]) > 40
    assert {case.answer for case in cases if case.is_missed} >= {STRICT}


def of_library(tmp_path):
    """A program in which a kernel calls each function of the library that is refused."""
    assert set(STATEMENTS) == {*host_library.C, *host_library.ALL}
    source = tmp_path / "library.cu"
    head = "".join(f"#include <{name}>\n" for name in HEADERS)
    source.write_text(head + "__global__ void k(int* p, char* c) {\n"
                      + "\n".join(STATEMENTS.values()) + "\n}\n")  # fmt: skip
    first = len(HEADERS) + 2
    return source, list(range(first, first + len(STATEMENTS)))


@pytest.mark.parametrize("words", [[], ["--checked"]], ids=str)
def test_functions_of_the_hosts_library_are_refused(kit, tmp_path, words):
    source, lines = of_library(tmp_path)
    got = refused_lines(kit, source, tmp_path / "a.o", *words)
    assert set(lines) <= set(got) <= {*lines, lines[-1] + 1}  # where objects end


def test_functions_of_the_hosts_library_are_refused_by_nvcc(tmp_path):
    nvcc = configure.find_nvcc()
    if nvcc is None:
        pytest.skip("there is no nvcc here")
    source, lines = of_library(tmp_path)
    words = [nvcc, "-std=c++17", "-Xcudafe", "--error_limit=1000", "-c", source, "-o", "/dev/null"]
    got = set()
    while found := re.findall(
        r"\((\d+)\): error.*calling a (?:constexpr )?__host__ function",
        subprocess.run(words, capture_output=True, text=True).stderr,
    ):
        got |= {int(line) for line in found}
        kept = source.read_text().splitlines()  # constexpr functions are refused before the others
        source.write_text(
            "\n".join("" if n in got and n in lines else line for n, line in enumerate(kept, 1))
        )
    assert set(lines) <= got


def test_max_of_cuda_is_not_that_of_std(kit, tmp_path):
    source = tmp_path / "a.cu"
    kernel = "__global__ void k(int* p) { p[0] = max(p[0], p[1]) + min(p[0], 3); }\n"
    source.write_text("#include <algorithm>\nusing namespace std;\n" + kernel)
    assert refused_lines(kit, source, tmp_path / "a.o") == []


def test_a_source_that_cannot_say_whose_its_functions_are_is_compiled(kit, tmp_path):
    # In C++11 a constexpr function has no variables.
    source = tmp_path / "a.cu"
    source.write_text("constexpr int f(int x) { return x; }\n"
                      "__global__ void k(int* p) { p[0] = f(3); }\n"
                      "int main() { k<<<1, 1>>>(nullptr); }\n")  # fmt: skip
    done = kit.emucc("-c", source, "-o", tmp_path / "a.o", "-std=c++17")
    assert done.returncode == 0, done.stderr
    source.write_text(source.read_text() + "int h(int x) { return y; }\n")
    done = kit.emucc("-c", source, "-o", tmp_path / "a.o")
    assert done.returncode == 1 and "a.cu:4:" in done.stderr and "emulator_" not in done.stderr


def test_what_people_read_has_no_marks(kit, tmp_path):
    source = tmp_path / "a.cu"
    source.write_text("__global__ void k(int* p) { p[0] = 1; }\n")
    done = kit.emucc("--keep", "-c", source, "-o", tmp_path / "a.o")
    assert done.returncode == 0 and "emulator_device" not in (tmp_path / "a.cu.cc").read_text()


# --------------------------------------------------------------------------------------------
# Variables of the device, in a program of two files.

FIRST = """
%s int counter = 1;
__constant__ int table[2] = {2, 3};
static __global__ void k(int* p) { p[0] = counter + table[1]; }
void second(int*);
int main() {
  int *p, got[2];
  cudaMalloc(&p, 8);
  k<<<1, 1>>>(p);
  second(p + 1);
  cudaMemcpy(got, p, 8, cudaMemcpyDeviceToHost);
  return got[0] == 4 && got[1] == %d ? 0 : 1;
}
"""
SECOND = """
%s int counter%s;
__device__ __constant__ int table[2] = {20, 30};
static __global__ void k(int* p) { p[0] = counter + table[1]; }
void second(int* p) { k<<<1, 1>>>(p); }
"""


def run_both(kit, tmp_path, first, second, *words):
    """What comes of a program of two files."""
    objects = []
    for name, text in (("first", first), ("second", second)):
        source = tmp_path / f"{name}.cu"
        source.write_text(text)
        objects.append(source.with_suffix(".o"))
        done = kit.emucc("-Wall", "-Werror", *words, source, "-o", objects[-1])
        assert done.returncode == 0, done.stderr
    return kit.call(kit.link(*objects, tmp_path / "both")).returncode


def test_each_file_has_variables_of_the_device_of_its_own(kit, tmp_path):
    first, second = FIRST % ("__device__", 40), SECOND % ("__device__", " = 10")
    assert run_both(kit, tmp_path, first, second, "-c") == 0
    unused = "__device__ int unused;\nnamespace a { __managed__ float more[3]; }\n"
    assert run_both(kit, tmp_path, first + unused, unused + second, "-c") == 0


@pytest.mark.parametrize("words", [["-c", "-rdc=true"], ["-c", "-rdc", "true"], ["-dc"]], ids=str)
def test_files_share_variables_of_the_device_with_rdc(kit, tmp_path, words):
    table = "__device__ __constant__ int table"
    first = FIRST.replace("__constant__", "static __constant__") % ("__device__", 31)
    second = SECOND.replace(table, "static " + table) % ("extern __device__", "")
    assert run_both(kit, tmp_path, first, second, *words) == 0
