"""Occupancy by NVIDIA's rules: known figures, its own header as an oracle, compiled kernels."""

import glob
import random
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest

from dlsys.occupancy import CAPABILITIES, Launch, changes, compiled, occupancy
from dlsys.occupancy.__main__ import main
from dlsys.occupancy.picture import picture

H100 = CAPABILITIES["9.0"]

#: (capability, threads, registers, bytes of shared memory) -> blocks, what limits them. Worked out
#: by hand from the CUDA documentation on occupancy, and confirmed by cuda_occupancy.h.
KNOWN = [
    ("9.0", 256, 32, 0, 8, []),  # full
    ("9.0", 256, 33, 0, 6, ["registers"]),  # 33 * 32 = 1056, made 1280: 12 warps a quarter
    ("9.0", 256, 40, 16384, 6, ["registers"]),
    ("9.0", 32, 16, 0, 32, ["blocks"]),
    ("9.0", 96, 40, 0, 16, ["registers"]),  # 48 warps, of 3 each
    ("9.0", 1024, 64, 0, 1, ["registers"]),
    ("9.0", 1024, 65, 0, 0, ["registers"]),
    ("9.0", 128, 255, 0, 2, ["registers"]),
    ("9.0", 128, 32, 227 * 1024, 1, ["shared memory"]),
    ("9.0", 128, 32, 56 * 1024, 4, ["shared memory"]),  # of 57 KB, with the reserved one
    ("9.0", 128, 32, 56 * 1024 + 1, 3, ["shared memory"]),  # 128 bytes more
    ("8.0", 128, 32, 40 * 1024, 4, ["shared memory"]),
    ("8.0", 256, 64, 0, 4, ["registers"]),
    ("8.6", 64, 20, 0, 16, ["blocks"]),
    ("8.6", 1024, 32, 0, 1, ["warps"]),
    ("8.9", 64, 20, 0, 24, []),
    ("7.5", 1024, 64, 0, 1, []),
    ("7.0", 128, 32, 96 * 1024, 1, ["shared memory"]),  # nothing is reserved
    ("7.5", 64, 32, 4097, 15, ["shared memory"]),  # made a multiple of 256
]


@pytest.mark.parametrize("capability, threads, registers, shared, blocks, limits", KNOWN)
def test_known_figures(capability, threads, registers, shared, blocks, limits):
    found = occupancy(Launch(threads, registers, shared), CAPABILITIES[capability])
    assert (found.blocks, found.limits) == (blocks, limits)
    assert found.warps == blocks * -(-threads // 32)


HEADERS = glob.glob("/usr/local/cuda*/include/cuda_occupancy.h")
ORACLE = """
#include <cstdio>
#include <cuda_occupancy.h>
int main() {
  int major, minor, warps, blocks, shared, reserved, threads, registers, taken;
  while (scanf("%d %d %d %d %d %d %d %d %d", &major, &minor, &warps, &blocks, &shared, &reserved,
               &threads, &registers, &taken) == 9) {
    cudaOccDeviceProp on;
    on.computeMajor = major;
    on.computeMinor = minor;
    on.maxThreadsPerBlock = 1024;
    on.maxThreadsPerMultiprocessor = 32 * warps;
    on.regsPerBlock = on.regsPerMultiprocessor = 65536;
    on.warpSize = 32;
    on.sharedMemPerBlock = 48 * 1024;
    on.sharedMemPerMultiprocessor = shared;
    on.sharedMemPerBlockOptin = shared - reserved;
    on.reservedSharedMemPerBlock = reserved;
    on.numSms = 1;
    cudaOccFuncAttributes kernel;
    kernel.maxThreadsPerBlock = 1024;
    kernel.numRegs = registers;
    kernel.sharedSizeBytes = 0;
    kernel.partitionedGCConfig = PARTITIONED_GC_OFF;
    kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    kernel.maxDynamicSharedSizeBytes = taken;
    kernel.numBlockBarriers = 1;
    cudaOccDeviceState state;
    cudaOccResult found;
    const int error = cudaOccMaxActiveBlocksPerMultiprocessor(&found, &on, &kernel, &state, threads,
                                                              taken);
    printf("%d\\n", error ? -1 : found.activeBlocksPerMultiprocessor);
  }
}
"""


@pytest.mark.skipif(not HEADERS, reason="no CUDA toolkit here")
def test_the_rules_are_those_of_nvidias_header(tmp_path):
    (tmp_path / "oracle.cc").write_text(ORACLE)
    include = "-I" + HEADERS[0].rpartition("/")[0]
    command = ["g++", "-w", include, "oracle.cc", "-o", "oracle"]
    subprocess.run(command, cwd=tmp_path, check=True)
    draw, lines, ours = random.Random(0), [], []
    for _ in range(4000):
        on = draw.choice(list(CAPABILITIES.values()))
        launch = Launch(
            draw.randint(1, 1024), draw.randint(1, 255),
            draw.choice((0, draw.randint(0, on.most_shared), draw.randint(0, 9000))),
        )  # fmt: skip
        numbers = [*map(int, on.capability.split(".")), on.warps, on.blocks, on.shared]
        numbers += [on.reserved, launch.threads, launch.registers, launch.shared]
        lines.append(" ".join(map(str, numbers)))
        ours.append(occupancy(launch, on).blocks)
    done = subprocess.run(
        ["./oracle"], cwd=tmp_path, input="\n".join(lines), capture_output=True, text=True
    )
    theirs = list(map(int, done.stdout.split()))
    wrong = [(line, a, b) for line, a, b in zip(lines, ours, theirs, strict=True) if a != b]
    assert wrong == []


def test_a_change_is_the_nearest_that_gives_a_block_more():
    by_registers = changes(Launch(256, 40), H100)
    assert [(each.registers, there.blocks) for each, there in by_registers] == [(32, 8)]
    by_shared = changes(Launch(128, 32, 56 * 1024 + 1), H100)
    assert by_shared[0][0].shared == 56 * 1024
    assert changes(Launch(256, 32), H100) == []


def test_fewer_threads_help_where_a_large_block_does_not_fit_twice():
    ((other, there),) = changes(Launch(1024, 32), CAPABILITIES["8.6"])
    assert (other.threads, there.share) == (768, 1.0)


@pytest.mark.parametrize(
    "launch, words",
    [
        (Launch(0, 32), "0 threads a block"),
        (Launch(1025, 32), "1025 threads a block"),
        (Launch(32, 256), "256 registers"),
        (Launch(32, 32, 227 * 1024 + 1), "232449 bytes of shared memory a block; hint: capability"),
    ],
)
def test_a_launch_that_no_gpu_starts_is_refused(launch, words):
    with pytest.raises(ValueError, match=words):
        occupancy(launch, H100)


SAID = """
Fatbin elf code:
================
arch = sm_80
code version = [1,8]

Resource usage:
 Common:
  GLOBAL:0
 Function plain:
  REG:12 STACK:0 SHARED:512 LOCAL:0 CONSTANT[0]:560 TEXTURE:0 SURFACE:0 SAMPLER:0

Fatbin elf code:
================
arch = sm_90
 Function _Z5thoseILi4EEvPfi:
  REG:40 STACK:0 SHARED:1536 LOCAL:0 CONSTANT[0]:560 TEXTURE:0 SURFACE:0 SAMPLER:0
"""


def test_what_cuobjdump_says_is_read_without_what_is_reserved():
    (of_90,) = compiled.read(SAID, "9.0")
    assert (of_90.registers, of_90.shared) == (40, 512)
    assert of_90.name == ("those<4>" if shutil.which("c++filt") else "_Z5thoseILi4EEvPfi")
    (of_80,) = compiled.read(SAID, "8.0")
    assert (of_80.name, of_80.registers, of_80.shared) == ("plain", 12, 512)
    assert compiled.read(SAID, "8.6") == [of_80]


SOURCE = """
namespace {
__global__ void tile(float* out) {
  __shared__ float held[256];
  held[threadIdx.x] = out[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = held[255 - threadIdx.x];
}
}
void launch(float* out) { tile<<<1, 256>>>(out); }
"""


@pytest.mark.skipif(not shutil.which("nvcc") or not shutil.which("cuobjdump"), reason="no CUDA")
def test_a_source_is_compiled_and_read(tmp_path, capsys):
    (tmp_path / "tile.cu").write_text(SOURCE)
    assert main([str(tmp_path / "tile.cu"), "--capability", "9.0", "--threads", "256"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("tile: 256 threads a block, ")
    assert " 1024 bytes of shared memory a block, capability 9.0\n" in said
    assert "8 blocks, 64 of 64 warps: 100 %" in said


def test_the_command_says_what_limits_and_what_a_change_gives(capsys):
    assert main(["--threads", "256", "--registers", "40", "--capability", "9.0"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert "  registers      has room for    6 blocks <" in said
    assert "  so 6 blocks, 48 of 64 warps: 75 %" in said
    assert said[-1] == "  with 32 registers a thread: 100 %"


@pytest.mark.parametrize(
    "arguments, words",
    [
        ([], "no kernel; hint: a file, or --registers N"),
        (["--registers", "300"], "300 registers; hint: 1 to 255"),
        (["nothing.so"], "cuobjdump"),
    ],
)
def test_what_can_not_be_told_is_refused_in_words(arguments, words, capsys):
    assert main(arguments) == 2
    assert words in capsys.readouterr().err


def test_the_picture_has_a_curve_for_each_number_and_marks_the_launch(tmp_path):
    path = tmp_path / "occupancy.svg"
    assert main(["--registers", "40", "--shared", "16384", "--svg", str(path)]) == 0
    root = ElementTree.parse(path).getroot()
    names = [each.tag.rpartition("}")[2] for each in root]
    assert names.count("path") == 3 and names.count("circle") == 3
    assert "prefers-color-scheme: dark" in path.read_text()
    assert picture(Launch(256, 40), H100, "x") != picture(Launch(256, 32), H100, "x")
