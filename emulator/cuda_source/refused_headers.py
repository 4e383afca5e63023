"""Headers of CUDA that the emulated GPU has not: each is refused in words, in a file of its own.

    python3 refused_headers.py             writes these files into include/
    g++ ... 2>&1 | python3 refused_headers.py --tell     puts the refusal at the line that includes

A compiler names the header's line in the error and the student's line above it. tell() makes one
line of that: what the student's line asks for, and what to use instead.
"""

import re
import sys
from pathlib import Path

INCLUDE = Path(__file__).resolve().parents[1] / "include"

# A pattern of names, what it is, and what to use instead.
LIBRARIES = (
    (r"thrust/.*", "Thrust", "write the loop as a kernel, or on the host"),
    (r"cub/.*", "CUB", "write the reduction or scan as a kernel of your own"),
    (r"cufft\w*\.h", "cuFFT", "write the transform as a kernel, or on the host"),
    (r"curand\w*\.h", "cuRAND",
     "make the numbers on the host, or by a generator of your own in the kernel"),
    (r"cusparse\w*\.h", "cuSPARSE", "write the sparse product as a kernel"),
    (r"cusolver\w*\.h", "cuSOLVER", "write the solver as kernels, or on the host"),
    (r"cudnn\w*\.h", "cuDNN", "write the layer as a kernel"),
    (r"nccl\.h", "NCCL", "there is one device; work on it alone"),
    (r"nvshmemx?\.h", "NVSHMEM", "there is one device; work on it alone"),
    (r"nvml\.h", "NVML", "ask cudaGetDeviceProperties"),
    (r"npp\w*\.h", "NPP", "write the filter as a kernel"),
    (r"nvjpeg\w*\.h", "nvJPEG", "read the picture on the host"),
    (r"cutensor\w*\.h", "cuTENSOR", "write the contraction as a kernel"),
    (r"cutlass/.*|cute/.*", "CUTLASS", "write the product as a kernel"),
    (r"nvrtc\w*\.h", "compiler at run time (NVRTC)",
     "compile the kernel with the program and launch it by kernel<<<grid, block>>>()"),
    (r"cublas\.h", "cuBLAS of before 2011",
     "include cublas_v2.h, whose functions take a handle"),
    (r"cublasXt\.h", "cuBLAS over several devices", "include cublas_v2.h"),
    (r"crt/mma\.h", "header of the compiler's own", "include mma.h"),
    (r"cuda_fp8\.h|cuda_fp6\.h|cuda_fp4\.h", "numbers of 8 bits and less",
     "use __half or __nv_bfloat16"),
    (r"cuda_awbarrier\w*\.h|cuda/barrier", "split barriers", "use __syncthreads()"),
    (r"cuda/pipeline", "cuda::pipeline",
     "use cuda_pipeline.h, or plain copies and __syncthreads()"),
    (r"cuda/(std/)?atomic", "cuda::atomic", "use atomicAdd and its like"),
    (r"cuda/std/.*", "C++ library for kernels (cuda::std)",
     "write the function in the kernel, or use <cmath> and <limits>"),
    (r"cuda/.*|nv/target", "CUDA C++ library (cuda::)", "use the functions without cuda::"),
    (r"cuda_(gl|vdpau|egl|d3d\w*)_interop\.h|cuda(GL|EGL|VDPAU)\.h",
     "pictures shared with OpenGL and its like", "copy the result to the host and draw it there"),
    (r"cupti\w*\.h|nvperf_\w+\.h", "CUPTI", "measure with cudaEventElapsedTime"),
    (r"cufile\.h", "cuFile", "read the file on the host"),
    (r"optix\w*\.h", "OptiX", "write the ray tracer as a kernel"),
)  # fmt: skip

THRUST = """adjacent_difference advance binary_search complex copy count device_allocator
 device_delete device_free device_malloc device_malloc_allocator device_new device_ptr
 device_reference device_vector distance equal execution_policy extrema fill find for_each
 functional gather generate host_vector inner_product iterator/constant_iterator
 iterator/counting_iterator iterator/discard_iterator iterator/permutation_iterator
 iterator/reverse_iterator iterator/transform_iterator iterator/zip_iterator logical memory merge
 mismatch pair partition random random/linear_congruential_engine
 random/uniform_int_distribution random/uniform_real_distribution reduce remove replace
 reverse scan scatter sequence set_operations shuffle sort swap system/cuda/execution_policy
 system/omp/execution_policy system_error tabulate transform transform_reduce transform_scan tuple
 uninitialized_copy uninitialized_fill unique universal_vector version zip_function"""
CUB = """cub block/block_load block/block_radix_sort block/block_reduce block/block_scan
 block/block_store block/block_histogram block/block_exchange device/device_histogram
 device/device_radix_sort device/device_reduce device/device_scan device/device_select
 device/device_segmented_reduce device/device_partition iterator/counting_input_iterator
 iterator/transform_input_iterator util_allocator util_type warp/warp_reduce warp/warp_scan"""
CUDA = """barrier pipeline atomic annotated_ptr functional latch semaphore ptx std/algorithm
 std/array std/atomic std/barrier std/bit std/cassert std/chrono std/cmath std/complex std/cstddef
 std/cstdint std/functional std/latch std/limits std/mdspan std/numeric std/optional std/ranges
 std/semaphore std/span std/tuple std/type_traits std/utility std/variant"""
SINGLE = """cufft.h cufftXt.h cufftw.h curand.h curand_kernel.h curand_uniform.h curand_normal.h
 curand_mtgp32_host.h curand_mtgp32dc_p_11213.h curand_philox4x32_x.h cusparse.h cusparse_v2.h
 cusparseLt.h cusolverDn.h cusolverSp.h cusolver_common.h cusolverRf.h cusolverMg.h cudnn.h
 cudnn_frontend.h nccl.h nvshmem.h nvshmemx.h nvml.h npp.h nppi.h npps.h nppcore.h nppdefs.h
 nppversion.h nvjpeg.h cutensor.h cutlass/cutlass.h cutlass/gemm/device/gemm.h
 cutlass/numeric_types.h cute/tensor.hpp nvrtc.h nvrtc_helper.h cublas.h cublasXt.h crt/mma.h
 cuda_fp8.h cuda_fp6.h cuda_fp4.h cuda_awbarrier.h cuda_awbarrier_primitives.h nv/target
 cuda_gl_interop.h cuda_egl_interop.h cuda_vdpau_interop.h cudaGL.h cudaEGL.h cudaVDPAU.h cupti.h
 cufile.h optix.h optix_stubs.h"""


def headers():
    """The names of all headers that are refused by a file."""
    names = ["thrust/%s.h" % name for name in THRUST.split()]
    names += ["cub/%s.cuh" % name for name in CUB.split()]
    names += ["cuda/%s" % name for name in CUDA.split()]
    return names + SINGLE.split()


def refusal_of(header):
    """What is said of a header, or None if it is none of these."""
    for pattern, what, instead in LIBRARIES:
        if re.fullmatch(pattern, header):
            return "the emulated GPU has no %s (%s); hint: %s, or DEVICE=cuda" % (
                what, header, instead,
            )  # fmt: skip
    return None


def text_of(header):
    """The file that refuses a header."""
    what = next(what for pattern, what, _ in LIBRARIES if re.fullmatch(pattern, header))
    brief = "Refused: %s. Written by refused_headers.py." % what
    comment = "/*!\n * \\file %s\n * \\brief %s\n */\n" % (header, brief)
    return comment + "#error %s\n" % refusal_of(header)


INCLUDED = re.compile(r"(?:In file included|\s+) from ([^\n]+?):(\d+)(?::\d+)?[:,]$")
REFUSED = re.compile(r"\S.*?: (?:fatal )?error: (?:#error )?\"?(the emulated GPU has no [^\n]*)")
MISSING = re.compile(
    r"([^\n]+?):(\d+):\d+: (?:fatal )?error: "
    r"(?:'([^'\n]+)' file not found|([^:\n]+): No such file or directory)"
)
REST = re.compile(r"\s+(\d+ )?\||compilation terminated|\d+ errors? generated")


def innermost(chain):
    """File and line of the last include of a chain: g++ begins with it, clang ends with it."""
    return chain[-1 if chain[-1][0].startswith("In file") else 0][1:]


def tell(messages):
    """What a compiler said, with each refused header in one line, at the line that includes it."""
    out, chain, shown = [], [], True
    for line in messages.splitlines():
        included, missing = INCLUDED.match(line), MISSING.match(line)
        refused = REFUSED.match(line) if chain else None
        header = missing and (missing[3] or missing[4])
        if included:
            chain.append((line, included[1], included[2]))
        elif refused or (header and refusal_of(header)):
            place = innermost(chain) if refused else missing.group(1, 2)
            out.append("%s:%s: error: %s" % (*place, refused[1] if refused else refusal_of(header)))
            chain, shown = [], False
        elif shown or not REST.match(line):
            out += [entry[0] for entry in chain] + [line]
            chain, shown = [], True
    return "".join(line + "\n" for line in out + [entry[0] for entry in chain])


def main():
    """Writes the headers, or reads a compiler's messages."""
    if sys.argv[1:] == ["--tell"]:
        sys.stderr.write(tell(sys.stdin.read()))
        return 0
    for header in headers():
        path = INCLUDE / header
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text_of(header))
    return 0


if __name__ == "__main__":
    sys.exit(main())
