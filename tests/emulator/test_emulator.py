"""The emulated GPU: its language, its refusals and its errors.

The programs are in tests/emulator/; each test runs one case of one of them in a process of its
own. Everything is built in a temporary folder, once a session.
"""

import ctypes
import signal
import sys
from pathlib import Path

import pytest

import kit as emulator_kit


@pytest.fixture
def holds(kit):
    """Runs a case, which must hold; returns what it printed on stderr."""

    def run(program, case, **env):
        done = kit.run(program, case, **env)
        assert done.returncode == 0, done.stderr
        return done.stderr

    return run


def cases(program):
    """Names of the cases of a program."""
    lines = (emulator_kit.PROGRAMS / f"{program}.cu").read_text().splitlines()
    return [line[5 : line.index(")")] for line in lines if line.startswith("CASE(")]


# Cases that say everything themselves. The others are below, each with its own test.
ALONE = {
    "language": {"kernels_print"},
    "graphs": {"a_graph_is_drawn"},  # this and the next two: test_graphs.py
    "capture_errors": set(cases("capture_errors")),
    "random_graphs": set(),
    "cublas_graphs": set(),
    "cublas": set(),
    "cublas_levels": set(),
    "cublas_typed": set(),
    "device_queries": set(),
    "driver": set(),
    "headers": set(),
    "host_memory": set(),
    "barriers": {"a_deadlock_ends_the_launch", "print_results"},
    "groups": set(),
    "host": set(),
    "intrinsics": set(),
    "more_intrinsics": set(),
    "launches": set(),
    "flat": {"past_the_end"},
    "loops": set(),
    "simd": set(),
    "fragments": set(),
    "numbers": {"round_a_file", "widen_all", "compute_a_file_of_halves",
                "compute_a_file_of_bfloats"},
    "waits": set(),
    "endless": set(cases("endless")),  # test_watchdog.py
    "errors": {"a_failing_assert_stays", "an_assert_of_the_host_aborts"},
    "memory": {"more_than_the_device_has_is_refused", "the_host_reads_device_memory",
               "the_host_reads_what_a_kernel_has_found",
               "the_host_asks_for_no_protection_and_reads_device_memory",
               "a_kernel_writes_past_the_end", "a_kernel_writes_to_null",
               "a_kernel_writes_to_freed_memory", "a_kernel_writes_anywhere",
               "a_kernel_overflows_its_stack"},
    "variables": {"the_host_reads_what_a_kernel_got", "a_heap_without_memory_gives_null"},
}  # fmt: skip


@pytest.mark.parametrize(
    "program, case",
    [(program, case) for program in ALONE for case in cases(program) if case not in ALONE[program]],
)
def test_holds(holds, program, case):
    holds(program, case)


def test_no_case_is_left_out():
    assert {path.stem for path in emulator_kit.programs()} == set(ALONE)
    assert all(ALONE[program] <= set(cases(program)) for program in ALONE)


def test_kernels_print_before_a_synchronisation_returns(kit):
    done = kit.run("language", "kernels_print")
    assert sorted(done.stdout.splitlines()) == [
        f"thread {thread} of block {block}" for thread in (0, 1) for block in (0, 1)
    ]


def test_a_deadlock_is_told_with_who_waits_where(holds):
    message = holds("barriers", "a_deadlock_ends_the_launch")
    assert "kernel half_waits, block (" in message
    assert "Of 64 threads 40 wait at __syncthreads(), 24 wait at __syncwarp()" in message


def test_results_do_not_depend_on_the_number_of_cpu_threads(kit):
    outputs = {
        kit.run("barriers", "print_results", EMULATOR_THREADS=str(n)).stdout for n in (1, 2, 5)
    }
    assert len(outputs) == 1
    assert len(outputs.pop().splitlines()) == 300


def test_a_failing_assert_is_told_with_its_place(holds):
    message = holds("errors", "a_failing_assert_stays")
    place = "errors.cu:"
    assert place in message
    assert "block: [2,0,0], thread: [31,0,0] Assertion `" in message
    assert message.count("Assertion") == 1
    assert "threadIdx.x + blockIdx.x < limit" in message


def test_an_assert_of_the_host_aborts_as_usual(kit):
    done = kit.run("errors", "an_assert_of_the_host_aborts")
    assert done.returncode == -signal.SIGABRT
    assert "Assertion `1 + 1 == 3` failed." in done.stderr


def test_more_memory_than_the_device_has_is_refused(holds):
    holds("memory", "more_than_the_device_has_is_refused", EMULATOR_MEMORY="64M")


def test_kernels_are_told_that_no_memory_is_left(holds):
    holds("variables", "a_heap_without_memory_gives_null", EMULATOR_MEMORY="250M")


def test_a_library_is_closed_and_opened_again(kit):
    """Its variables go with it; so does its code, whose `new` is the kernels'."""
    source = kit.folder / "closed.cu"
    source.write_text(LIBRARY)
    kit.build_shared(source)
    path = str(kit.folder / "libclosed.so")
    done = kit.call(sys.executable, "-c", OPENS_AND_CLOSES, path, kit.folder / "libemulator.so")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["2"] * 3


def test_host_threads_use_variables_while_kernels_run(kit):
    source, program = kit.folder / "threads.cu", kit.folder / "threads"
    source.write_text(THREADS)
    done = kit.emucc(source, "-o", program)
    assert done.returncode == 0, done.stderr
    done = kit.call(*kit.runner, program)
    assert done.returncode == 0 and done.stdout == "400\n", done.stderr


THREADS = """
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>
std::mutex mutex;
int total = 0;
__device__ int counters[4];
__global__ void count(int which) { for (volatile int i = 0; i < 10000; ++i); ++counters[which]; }
int main() {
  std::vector<std::thread> all;
  for (int which = 0; which < 4; ++which)
    all.emplace_back([which] {
      for (int i = 0; i < 100; ++i) {
        count<<<1, 1>>>(which);
        std::lock_guard<std::mutex> lock(mutex);
        ++total;
      }
    });
  for (std::thread& each : all) each.join();
  int counted[4];
  cudaMemcpyFromSymbol(counted, counters, sizeof counted);
  for (int count : counted) total -= 100 - count;
  std::printf("%d\\n", total);
}
"""
LIBRARY = """
#include <cuda_runtime.h>
__device__ int counter = 1, *piece;
static int many[1 << 18];
__global__ void count() { ++counter; ++many[0]; piece = new int[10]; }
extern "C" int counted() {
  int result = 0, *got = nullptr;
  cudaPointerAttributes attributes;
  count<<<1, 1>>>();
  cudaMemcpyFromSymbol(&result, counter, sizeof result);
  cudaMemcpyFromSymbol(&got, piece, sizeof got);
  cudaPointerGetAttributes(&attributes, got);
  return attributes.type == cudaMemoryTypeDevice && counter == 1 && many[0] == 0 ? result : 0;
}
"""
OPENS_AND_CLOSES = """
import _ctypes, ctypes, shutil, sys
emulator = ctypes.CDLL(sys.argv[2], ctypes.RTLD_GLOBAL)
shutil.copy(sys.argv[1], sys.argv[1] + ".other")
for path in (sys.argv[1], sys.argv[1] + ".other", sys.argv[1]):
    library = ctypes.CDLL(path)
    print(library.counted())
    _ctypes.dlclose(library._handle)
"""


def has_protection_keys():
    """Whether the CPU and the system can close memory for a thread."""
    if emulator_kit.RUNNER:
        return False
    try:
        return " ospke" in Path("/proc/cpuinfo").read_text()
    except OSError:
        return False


@pytest.mark.parametrize(
    "case",
    [
        "a_kernel_walks_a_list",
        "a_kernel_walks_a_list_beside_a_handler_of_the_program",
        "several_host_threads_walk_lists",
        "a_kernel_jumps_into_memory",
    ],
)
@pytest.mark.parametrize("protect", ["toggle", "0"])
def test_a_kernel_may_touch_what_it_was_not_given(holds, case, protect):
    holds("memory", case, EMULATOR_PROTECT=protect)


def test_what_a_kernel_has_found_is_closed_to_the_host_again(kit):
    case = "the_host_reads_what_a_kernel_has_found"
    done = kit.run("memory", case, EMULATOR_PROTECT="toggle")
    assert done.returncode in (-signal.SIGSEGV, -signal.SIGBUS)
    assert "host code touched device memory at 0x" in done.stderr
    assert "8 bytes into an allocation of 16 bytes" in done.stderr


@pytest.mark.parametrize("protect", ["keys", "toggling", "as it comes"])
def test_the_host_cannot_touch_device_memory(kit, protect):
    if protect == "keys" and not has_protection_keys():
        pytest.skip("this CPU has no protection keys, so device memory is closed by the system")
    env = {"keys": {"EMULATOR_PROTECT": "1"}, "toggling": {"EMULATOR_PROTECT": "toggle"}}
    env = env.get(protect, {})
    done = kit.run("memory", "the_host_reads_device_memory", **env)
    assert done.returncode in (-signal.SIGSEGV, -signal.SIGBUS)
    assert "host code touched device memory at 0x" in done.stderr
    assert "12 bytes into an allocation of 400 bytes" in done.stderr
    assert "hint: copy it to the host with cudaMemcpy" in done.stderr


def test_a_program_cannot_open_device_memory_by_a_variable(kit):
    done = kit.run("memory", "the_host_asks_for_no_protection_and_reads_device_memory")
    assert done.returncode in (-signal.SIGSEGV, -signal.SIGBUS)
    assert "host code touched device memory at 0x" in done.stderr


def test_code_of_the_runtime_never_counts_as_that_of_kernels(kit):
    """A linker that keeps to no order may put it between the ends."""
    library = ctypes.CDLL(str(kit.library))
    names = "19add_code_of_kernelsEPKvS1_", "18is_code_of_kernelsEPKv", "13add_variablesEPcS0_"
    add, asks, own = (library[f"_ZN8emulator{name}"] for name in names)
    add.argtypes, asks.argtypes = [ctypes.c_void_p] * 2, [ctypes.c_void_p]
    asks.restype = ctypes.c_bool
    place = ctypes.cast(own, ctypes.c_void_p).value
    add(place - 64, place + 64)
    assert not asks(place) and not asks(place - 64)
    add(place + 1, place + 64)
    assert asks(place + 1) and not asks(place)
    library["_ZN8emulator20drop_code_of_kernelsEPKv"](ctypes.c_void_p(place + 1))
    assert not asks(place + 1)


def test_the_host_cannot_read_what_a_kernel_got_by_malloc(kit):
    done = kit.run("variables", "the_host_reads_what_a_kernel_got", EMULATOR_PROTECT="1")
    assert done.returncode in (-signal.SIGSEGV, -signal.SIGBUS)
    assert "host code touched device memory at 0x" in done.stderr


@pytest.mark.parametrize(
    "case, said",
    [
        ("past_the_end", "4 bytes past the end of an allocation of 4096 bytes"),
        ("to_null", "0x0, a null pointer"),
        ("to_freed_memory", "of device memory, which is not allocated"),
        ("anywhere", "0x123456789000, which is not device memory"),
    ],
)
def test_a_wrong_address_in_a_kernel_ends_the_launch(holds, case, said):
    message = holds("memory", f"a_kernel_writes_{case}")
    assert "kernel write_at, block (" in message
    assert "thread (5, 0, 0): accessed address 0x" in message
    assert said in message


def test_a_stack_overflow_in_a_kernel_is_told_as_one(holds):
    message = holds("memory", "a_kernel_overflows_its_stack")
    assert "the stack overflowed" in message
    assert "kernel overflow, block (0, 0, 0), thread (0, 0, 0)" in message
