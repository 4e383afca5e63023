"""The fast form of kernels stays vectorised: counted in the assembly that the compiler writes.

Times would tell of the machine. Packed instructions are counted where the work is done: if those
are gone, a product of matrices takes five times as long.
"""

import re
from dataclasses import dataclass, field

import pytest

import kit as emulator_kit
from compiler import of_emulator, without_names

PACKED = re.compile(r"v?(add|mul|cmp|max)\w*ps\s.*%([xyz])mm")
STORE = re.compile(r"v?mov[ua]ps\s+%[xyz]mm\d+, .*\(")
FLOATS = {"x": 4, "y": 8, "z": 16}
CHUNK = 16  # kChunk in emulator/include/emulator/loops.h
ADDS, MULTIPLIES, COMPARES = {"add"}, {"mul"}, {"cmp", "max"}

SOURCES = {
    "speed": emulator_kit.PROGRAMS / "speed.cu",
    "gpu_op": emulator_kit.ROOT / "solution/src/gpu_op.cu",
}
# What the second version of a kernel does with several floats at once: one of each set.
WORK = {
    ("speed", "add"): [ADDS],
    ("speed", "relu_gradient"): [COMPARES],
    ("speed", "matmul_naive"): [ADDS, MULTIPLIES],
    ("speed", "matmul_flat"): [ADDS, MULTIPLIES],
    ("speed", "matmul_tiled"): [ADDS, MULTIPLIES],
    ("speed", "softmax_block"): [ADDS, COMPARES],
    ("gpu_op", "elementwise_add_kernel"): [ADDS],
    ("gpu_op", "multiply_by_const_kernel"): [MULTIPLIES],
    ("gpu_op", "relu_kernel"): [COMPARES],
    ("gpu_op", "relu_gradient_kernel"): [COMPARES],
    ("gpu_op", "reduce_sum_axis_zero_kernel_v1"): [ADDS],
    ("gpu_op", "matrix_multiply_kernel_v1"): [ADDS, MULTIPLIES],
    ("gpu_op", "matrix_multiply_kernel"): [ADDS, MULTIPLIES],
}
# Whose sums take turns of a loop for a whole chunk of threads.
SUMS = [
    ("speed", "matmul_naive"),
    ("speed", "matmul_flat"),
    ("gpu_op", "reduce_sum_axis_zero_kernel_v1"),
]


@dataclass
class Assembly:
    """The instructions of one function, and at which of them its labels stand."""

    code: list[str] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)

    def loops(self) -> list[list[str]]:
        """The instructions of each innermost loop: from a label to a jump back to it."""
        jumps = [(re.match(r"j\w+\s+(\.L\w+)", line), i) for i, line in enumerate(self.code)]
        ends = [(self.labels.get(jump.group(1), i + 1), i) for jump, i in jumps if jump]
        back = {(first, last) for first, last in ends if first <= last}
        return [
            self.code[first : last + 1]
            for first, last in back
            if not any(first <= a and b <= last for a, b in back - {(first, last)})
        ]


def floats(code, operations):
    """How many floats the packed instructions of some kinds compute, each counted once."""
    found = [PACKED.match(line) for line in code]
    return sum(FLOATS[one.group(2)] for one in found if one and one.group(1) in operations)


def second_versions(text):
    """The functions of an assembly listing that run a whole block, by the names of kernels."""
    found, current = {}, None
    for line in text.splitlines():
        label, instruction = re.match(r"(\.?\w+):", line), re.match(r"\s+(\w.*)", line)
        name = label and re.match(r"_Z\d+(\w+)N8emulator8KernelOf", label.group(1))
        if name:
            current = found.setdefault(name.group(1), Assembly())
        elif label and not label.group(1).startswith("."):
            current = None
        elif label and current:
            current.labels[label.group(1)] = len(current.code)
        elif instruction and current:
            current.code.append(instruction.group(1))
    return found


def listing(kit, path):
    """A .cu file as assembly, compiled as the emulated GPU does it."""
    kit.compile_kernels(path)
    plain, output = kit.folder / f"{path.stem}.cu.cc", kit.folder / f"{path.stem}.s"
    flags = [*of_emulator(), *without_names(kit.kernel_flags), "-g0", "-include", kit.prelude]
    done = kit.call(*kit.cxx, "-std=c++17", *flags, "-S", plain, "-o", output)
    assert done.returncode == 0, done.stderr
    return output.read_text()


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    """The second versions of all kernels, by source and name."""
    kit = emulator_kit.Kit(tmp_path_factory.mktemp("assembly"))
    if "x86_64" not in kit.call(*kit.cxx, "-dumpmachine").stdout:
        pytest.skip("the instructions are those of x86-64")
    return {
        (source, name): assembly
        for source, path in SOURCES.items()
        for name, assembly in second_versions(listing(kit, path)).items()
    }


def test_kernels_compute_on_several_floats_at_once(kernels):
    lost = [
        (kernel, operations)
        for kernel, work in WORK.items()
        for operations in work
        if not floats(kernels[kernel].code, operations)
    ]
    assert not lost, "no packed instruction of these kinds is left"


def test_sums_of_a_chunk_of_threads_stay_in_registers(kernels):
    for kernel in SUMS:
        loops = [loop for loop in kernels[kernel].loops() if floats(loop, ADDS) >= CHUNK]
        assert loops, f"{kernel}: no loop adds {CHUNK} floats at once"
        for loop in loops:
            assert not any(STORE.match(line) for line in loop), "\n".join([*kernel, *loop])
            assert not any(re.match(r"v?(add|mul)ss\s", line) for line in loop), "\n".join(loop)
