"""What the emulated GPU has not is refused in one line: the student's, with what to use instead.

And the other way round: names and numbers of what it has are NVIDIA's.
"""

import re
import subprocess

import configure
import pytest

import kit as emulator_kit
from cuda_source import refused_headers

INCLUDE = emulator_kit.EMULATOR / "include"

# A statement of the host, and what is said of it.
HOST = [
    ("cudaTextureObject_t t;", "no textures (cudaTextureObject_t); hint: read the array"),
    ("cudaChannelFormatDesc d = cudaCreateChannelDesc<float>();", "no textures"),
    ("cudaArray_t a; cudaMallocArray(&a, 0, 1, 1);", "no arrays for textures (cudaArray_t)"),
    ("cudaSurfaceObject_t s;", "no surfaces"),
    ("CUgraph g; cuGraphCreate(&g, 0);", "no graphs of the driver (cuGraphCreate); hint: "),
    ("cudaGraphConditionalHandle h;", "no such nodes of graphs (cudaGraphConditionalHandle)"),
    ("cudaLaunchCooperativeKernel(0, 1, 1, 0);", "no barrier of a whole grid"),
    ("cudaLaunchConfig_t c = {};", "no launches with attributes"),
    ("cudaIpcMemHandle_t h;", "no memory shared with other processes"),
    ("cudaGraphicsResource* r;", "no pictures shared with OpenGL"),
    ("CUmodule m; cuModuleLoad(&m, 0);", "no modules of PTX or cubin (cuModuleLoad); hint: "),
    ("CUfunction f; cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0);", "no modules of PTX"),
    ("cublasCgemm(0);", "no complex numbers in cuBLAS"),
    ("cublasSgetrfBatched(0);", "no solvers in cuBLAS"),
]
DEVICE = [
    ("x = __shfl_down(x, 1);", "no functions of a warp without a mask, as no GPU since 2017, "
     "(__shfl_down); hint: __shfl_down_sync, with 0xffffffff"),
    ("x = __shfl(x, 0);", "hint: __shfl_sync"),
    ("x = __ballot(x > 0);", "hint: __ballot_sync"),
    ("if (__any(x > 0)) x = 1;", "hint: __any_sync"),
    ("x = tex2D<float>(0, x, x);", "no textures (tex2D)"),
    ("helper<<<1, 1>>>();", "no launches in kernels"),
    ("cooperative_groups::this_grid().sync();", "no barrier of a whole grid"),
    ("cooperative_groups::sync(cooperative_groups::this_grid());", "no barrier of a whole grid"),
]  # fmt: skip
HEADERS = ["thrust/device_vector.h", "thrust/some/part.h", "cub/cub.cuh", "cufft.h",
           "curand_kernel.h", "cuda/barrier", "cuda/std/array", "cusparse.h", "cusolverDn.h",
            "nccl.h",
           "nvrtc.h", "cublas.h", "crt/mma.h", "cuda_fp8.h", "cudnn.h",
            "cuda_gl_interop.h"]  # fmt: skip
HEAD = """#include <cooperative_groups.h>
#include <cublas_v2.h>
#include <cuda.h>
__global__ void helper() {}
"""


def errors(kit, tmp_path, text):
    """The errors of a program, without the lines of source that a compiler shows below them."""
    source = tmp_path / "student.cu"
    source.write_text(text)
    done = kit.emucc("-w", "-c", source, "-o", tmp_path / "student.o")
    return [line for line in done.stderr.splitlines() if " error: " in line]


def is_one_line(said, line, words):
    """Whether there is one error, on a line of the student's, with certain words in it."""
    assert len(said) == 1, said
    assert re.search(rf"student\.cu:{line}[:,]", said[0]), said[0]
    assert words in said[0]
    assert "hint: " in said[0]


@pytest.mark.parametrize("statement, words", HOST)
def test_calls_of_the_host_are_refused_at_their_line(kit, tmp_path, statement, words):
    said = errors(kit, tmp_path, HEAD + "int main() {\n" + statement + "\n}\n")
    is_one_line(said[:1], 6, words)


@pytest.mark.parametrize("statement, words", DEVICE)
def test_what_kernels_call_is_refused_at_its_line(kit, tmp_path, statement, words):
    body = "__global__ void k(float* p) {\nfloat x = p[0];\n" + statement + "\np[0] = x;\n}\n"
    said = errors(kit, tmp_path, HEAD + body + "int main() { k<<<1, 32>>>(0); }\n")
    is_one_line(said[:1], 7, words)


@pytest.mark.parametrize("header", HEADERS)
def test_headers_are_refused_at_the_line_that_includes_them(kit, tmp_path, header):
    said = errors(kit, tmp_path, f"#include <cstdio>\n\n#include <{header}>\nint main() {{}}\n")
    is_one_line(said, 3, "the emulated GPU has no ")
    assert f"({header})" in said[0]


def test_a_header_of_the_students_own_is_named(kit, tmp_path):
    (tmp_path / "sorting.h").write_text("#pragma once\n#include <thrust/sort.h>\n")
    (said,) = errors(kit, tmp_path, '#include "sorting.h"\n')
    assert re.search(r"sorting\.h:2: error: the emulated GPU has no Thrust", said)


@pytest.mark.parametrize("opened, closed", ["{}", "()"])
def test_brackets_deeper_than_anybody_writes_them_are_refused_in_every_form(
    kit, tmp_path, opened, closed
):
    body = f"x = {'(' * 600}x{')' * 600};" if opened == "(" else "{" * 600 + "}" * 600
    source = tmp_path / "student.cu"
    source.write_text(f"__global__ void k(int x) {{\n{body}\n}}\n")
    for form in ((), ("--no-loops",), ("--checked",)):
        done = kit.emucc(*form, "-w", "-c", source, "-o", tmp_path / "student.o")
        assert done.returncode == 1
        assert re.search(r"student\.cu:2: error: brackets in more than 500 others", done.stderr)


def test_a_chain_of_hundreds_of_else_ifs_compiles(kit, tmp_path):
    chain = "".join(f"else if (i == {n}) p[i] = {n};\n" for n in range(1, 400))
    body = "int i = threadIdx.x;\n__syncthreads();\nif (i == 0) p[i] = 1;\n" + chain
    assert errors(kit, tmp_path, "__global__ void k(int* p) {\n" + body + "}\n") == []


def test_names_of_the_programs_own_are_no_refusals(kit, tmp_path):
    text = """
struct Material { float texture(float u) const { return u; } };
__device__ float __shfl_down(float x, int) { return x; }
__device__ float tex2D(float x, float y) { return x + y; }
__global__ void k(float* p) {
  Material m;
  p[0] = __shfl_down(tex2D(p[0], m.texture(1)), 1);
}
int main() { k<<<1, 1>>>(0); }
"""
    assert errors(kit, tmp_path, text) == []


BUILT_IN = [
    "const uint3* q = &threadIdx;", "auto q = &blockIdx.x;", "f(&blockDim);", "f(p, &gridDim);",
    "auto q = (const int*)&warpSize;", "decltype(&threadIdx) q;", "p = c ? &warpSize : 0;",
]  # fmt: skip


@pytest.mark.parametrize("statement", BUILT_IN)
def test_the_address_of_a_built_in_variable_is_refused_at_its_line(kit, tmp_path, statement):
    body = "template <class T> __global__ void k(T* p) {\nint c = 1;\n" + statement + "\n}\n"
    said = errors(kit, tmp_path, body)
    is_one_line(said[:1], 3, "the address of a built-in variable (")


def test_what_only_looks_like_an_address_is_not_refused(kit, tmp_path):
    text = """
__device__ unsigned by_reference(const uint3& i) { return i.x; }
__device__ bool has(unsigned m) { return m & threadIdx.x && threadIdx.y & m; }
__global__ void k(unsigned* p, unsigned m) {
  const uint3& i = threadIdx;
  p[0] = (m) & threadIdx.x | (m && blockDim.x) | sizeof(int*) & blockIdx.x | i.x;
  p[1] = by_reference(threadIdx) + has(m) + by_reference(i);
}
void show(const dim3*) {}
int main() {
  dim3 blockDim(32), gridDim(2);
  show(&blockDim), show(&gridDim);
  k<<<gridDim, blockDim>>>(0, 1);
}
"""
    assert errors(kit, tmp_path, text) == []


def test_a_kernel_behind_a_void_pointer_is_refused_by_cudaLaunchKernel(kit, tmp_path):
    text = "int main(int, char** argv) {\nconst void* kernel = argv;\n"
    text += "cudaLaunchKernel(kernel, 1, 1, 0);\n}\n"
    is_one_line(errors(kit, tmp_path, text), 3, "needs to see which kernel cudaLaunchKernel starts")


# Messages of g++ and of clang, and what becomes of them.
TOLD = [
    ("In file included from a.cu:3:\n/e/thrust/sort.h:5:2: error: #error the emulated GPU has no "
     "Thrust; hint: x\n    5 | #error y\n      |  ^~~~~\n"
     "compilation terminated due to -Wfatal-errors.\n",
     "a.cu:3: error: the emulated GPU has no Thrust; hint: x\n"),
    ("In file included from a.h:2,\n                 from a.cu:3:\n/e/cufft.h:5:2: error: #error "
     "the emulated GPU has no cuFFT; hint: x\n",
     "a.h:2: error: the emulated GPU has no cuFFT; hint: x\n"),
    ("In file included from a.cu:3:\n/e/thrust/sort.h:5:2: error: the emulated GPU has no Thrust; "
     "hint: x\n    5 | #error y\n      |  ^\n1 error generated.\n",
     "a.cu:3: error: the emulated GPU has no Thrust; hint: x\n"),
    ("a.cu:1:10: fatal error: 'none.h' file not found\n", None),
    ("In file included from b.h:1,\n                 from a.cu:2:\nc.h:4:1: error: expected ';'\n",
     None),
    ("a.cu:7:1: error: expected ';'\n    7 | x\n      | ^\ncompilation terminated due to "
     "-Wfatal-errors.\n", None),
]  # fmt: skip


@pytest.mark.parametrize("said, told", TOLD)
def test_what_a_compiler_says_of_a_header_becomes_one_line(said, told):
    assert refused_headers.tell(said) == (told or said)


@pytest.mark.parametrize("compiler", ["g++", "clang"])
def test_a_missing_header_of_a_refused_library_is_refused_too(compiler):
    end = {"g++": "thrust/x.h: No such file or directory", "clang": "'thrust/x.h' file not found"}
    told = refused_headers.tell(f"a.cu:2:10: fatal error: {end[compiler]}\n")
    assert told.startswith("a.cu:2: error: the emulated GPU has no Thrust (thrust/x.h); hint: ")


def test_headers_that_are_refused_are_those_of_the_table():
    for header in refused_headers.headers():
        assert (INCLUDE / header).read_text() == refused_headers.text_of(header)
    files = {path for path in INCLUDE.rglob("*") if path.is_file()}
    refused = {path for path in files if "\n#error the emulated" in path.read_text()}
    assert refused == {INCLUDE / header for header in refused_headers.headers()}


# --------------------------------------------------------------------------------------------
# NVIDIA's names and numbers, where its compiler is at hand.

# What CUDA 13 has no more, and programs of today still name.
DROPPED = {
    "cudaDevAttrCooperativeMultiDeviceLaunch", "cudaMemAllocationTypeInvalid",
}  # fmt: skip
FIELDS_DROPPED = {
    "clockRate", "deviceOverlap", "kernelExecTimeoutEnabled", "computeMode", "maxTexture1DLinear",
    "memoryClockRate", "singleToDoublePrecisionPerfRatio", "cooperativeMultiDeviceLaunch",
}  # fmt: skip


def constants(*names):
    """Names and numbers in enumerations, tables and macros of the emulator's headers."""
    found = {}
    for name in names:
        text = (INCLUDE / name).read_text()
        found.update(re.findall(r"^ +(?:enum \w+ \{ )?((?:cuda|CU|CUDA)\w+) = (-?\w+)", text, re.M))
        found.update(re.findall(r"\bE\((\w+), (\d+)", text))
        found.update(re.findall(r"^#define (cuda\w+|CU_\w+) (0x\w+)$", text, re.M))
    return {name: number for name, number in found.items() if name not in DROPPED}


@pytest.fixture(scope="module")
def nvcc():
    """NVIDIA's compiler, which needs no GPU for this."""
    found = configure.find_nvcc()
    if found is None:
        pytest.skip("there is no nvcc here")
    return found


def compiles(nvcc, tmp_path, lines):
    """Whether NVIDIA's headers agree with some assertions."""
    source = tmp_path / "facts.cu"
    source.write_text("#include <cuda.h>\n#include <cuda_runtime.h>\n#include <library_types.h>\n")
    with source.open("a") as file:
        file.writelines(line + "\n" for line in lines)
    done = subprocess.run([nvcc, "-std=c++17", "-c", source, "-o", tmp_path / "facts.o"],
                          capture_output=True, text=True, timeout=300)  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_numbers_are_nvidias(nvcc, tmp_path):
    found = constants(
        "emulator/driver_types.h", "emulator/device_attributes.h", "emulator/errors.h",
        "emulator/driver_errors.h", "emulator/driver_attributes.h", "library_types.h", "cuda.h",
    )  # fmt: skip
    assert len(found) > 600
    compiles(nvcc, tmp_path, [f"static_assert((int){n} == {v});" for n, v in found.items()])


def test_fields_of_the_properties_are_nvidias(nvcc, tmp_path):
    text = (INCLUDE / "emulator/device_properties.h").read_text()
    body = text[text.index("struct cudaDeviceProp") :]
    fields = re.findall(
        r"^  (?:unsigned|size_t|int|char|cudaUUID_t) (\w+)((?:\[\d+\])?);", body, re.M
    )
    assert len(fields) > 95
    kept = [name for name, _ in fields if name not in FIELDS_DROPPED]
    compiles(nvcc, tmp_path, [f"auto {name}_ = &cudaDeviceProp::{name};" for name in kept])
