"""The emulated GPU on arm64, in short, where qemu-user is; arm64_check.py runs everything."""

from concurrent.futures import ThreadPoolExecutor

import pytest

import arm64_check
import kit as emulator_kit

# The BLAS here is another CPU's: what is not called need not be found.
WITHOUT_BLAS = ["-Wl,--allow-shlib-undefined", "-Wl,-z,lazy", "-lpthread"]


@pytest.fixture(scope="module")
def kit(tmp_path_factory):
    """The library and two programs."""
    if arm64_check.missing():
        pytest.skip(arm64_check.missing())
    kit = emulator_kit.Kit(tmp_path_factory.mktemp("arm64"), [arm64_check.GCC], WITHOUT_BLAS,
                           arm64_check.runner())  # fmt: skip
    kit.build_library()
    with ThreadPoolExecutor() as pool:
        programs = [emulator_kit.PROGRAMS / f"{name}.cu" for name in ("barriers", "memory")]
        list(pool.map(kit.build_program, programs))
    return kit


@pytest.mark.parametrize(
    "case",
    [
        "a_barrier_waits_for_all_threads",
        "lanes_exchange_values",
        "local_variables_survive_barriers",
    ],
)
def test_threads_take_turns_on_arm64(kit, case):
    done = kit.run("barriers", case)
    assert done.returncode == 0, done.stderr


def test_a_wrong_address_in_a_kernel_ends_the_launch_on_arm64(kit):
    done = kit.run("memory", "a_kernel_writes_past_the_end")
    assert done.returncode == 0, done.stderr
    assert "4 bytes past the end of an allocation of 4096 bytes" in done.stderr


def test_a_stack_overflow_is_told_as_one_on_arm64(kit):
    done = kit.run("memory", "a_kernel_overflows_its_stack")
    assert done.returncode == 0, done.stderr
    assert "the stack overflowed" in done.stderr
