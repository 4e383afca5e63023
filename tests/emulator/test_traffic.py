"""What is counted of kernels is what everybody can count by hand."""

from pathlib import Path

import pytest

import checked
import count_kernels
import emulated


class Program:
    """What the kit has to know of traffic.cu."""

    path = Path(__file__).parent / "checked" / "traffic.cu"
    name, fixed = "traffic", False


@pytest.fixture(scope="module")
def kit(tmp_path_factory):
    kit = checked.CheckedKit(tmp_path_factory.mktemp("traffic"))
    kit.build_library()
    kit.build_program(Program)
    return kit


@pytest.fixture(scope="module")
def count(kit):
    """A function that gives the numbers of a case's one kernel that are not 0, less its cost."""

    def counted(case):
        path = kit.folder / f"{case}.jsonl"
        path.unlink(missing_ok=True)
        done = kit.call(kit.folder / "traffic", case, env={"EMULATOR_TRAFFIC": str(path)})
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        (numbers,) = count_kernels.read_counts(path).values()
        return {name: number for name, number in numbers.items() if number}

    return counted


def few(numbers, *names):
    """Some of the numbers, 0 where there is none."""
    return [numbers.get(name, 0) for name in names]


SECTORS = ("requests", "bytes", "load_sectors", "store_sectors")


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("copies_neighbours", [256, 32768, 512, 512]),
        ("copies_all_but_some_lanes", [8, 800, 13, 13]),
        ("copies_twice", [512, 65536, 1024, 1024]),
        ("copies_vectors", [64, 32768, 512, 512]),
        ("reads_each_32nd", [8, 1024, 128, 16]),
        ("reads_one_for_all", [8, 1024, 4, 16]),
        ("keeps_its_own_array", [16, 2048, 32, 32]),
    ],
)
def test_sectors_are_those_that_lie_under_the_lanes_of_a_warp(case, expected, count):
    assert few(count(case), *SECTORS) == expected


def test_lanes_that_end_early_leave_the_others_side_by_side(count):
    # At turn i the lanes behind it read what lies side by side.
    sectors = sum(4 - (i + 1) // 8 for i in range(31))
    assert few(count("lanes_that_end_early"), *SECTORS[::2]) == [31 + 1, sectors]


def test_a_column_of_an_unpadded_tile_takes_32_turns_and_of_a_padded_one_1(count):
    names = "shared_requests", "shared_turns", "replays"
    assert few(count("transposes_by_a_tile"), *names) == [256, 128 + 32 * 128, 31 * 128]
    assert few(count("transposes_by_a_padded_tile"), *names) == [256, 256, 0]
    assert few(count("transposes_by_a_padded_tile"), *SECTORS) == [256, 32768, 512, 512]


def test_each_warp_counts_at_a_barrier_and_at_a_shuffle(count):
    assert few(count("transposes_by_a_tile"), "barriers", "shuffles") == [4 * 32, 0]
    assert few(count("sums_by_shuffles"), "barriers", "shuffles") == [0, 2 * 5]


def test_lanes_that_meet_at_one_word_take_turns_to_add(count):
    # One word 32 times, and 32 words in 4 sectors; 32 turns at the word in shared memory.
    numbers = count("adds_atomically")
    assert few(numbers, "atomic_sectors", "shared_turns") == [32 + 4, 1 + 32 + 1]


def test_an_asynchronous_copy_is_read_and_written_as_it_is_long(count):
    numbers = count("copies_asynchronously")
    assert few(numbers, "load_sectors", "shared_requests", "shared_turns") == [16, 1 + 4, 4 + 4]


def test_a_thread_s_own_arrays_are_known_by_their_size(count):
    assert 256 <= count("has_256_bytes_of_its_own")["own_bytes"] / 2 < 1024
    assert 8192 <= count("has_8192_bytes_of_its_own")["own_bytes"] / 2 < 8192 + 1024


def test_a_struct_is_read_by_as_many_requests_as_it_has_vectors(count):
    assert few(count("copies_structs"), *SECTORS) == [4 + 1, 2048 + 128, 4 * 32, 4]


@pytest.mark.parametrize("case", ["calls_memmove", "calls_builtin_memcpy", "calls_std_copy"])
def test_what_a_function_copies_is_read(case, count):
    assert count(case)["bytes"] == 32 * 256 + 128


def test_blocks_and_warps_count_that_access_anything(count):
    assert few(count("has_warps_without_work"), "blocks", "warps") == [2, 4]


def test_a_copy_within_device_memory_counts_as_a_kernel(count):
    numbers = count("copies_on_the_device")
    assert few(numbers, "launches", "blocks", "warps", *SECTORS[2:]) == [1, 1, 1, 8, 8]


def test_the_cost_is_the_sum_of_what_each_is_worth(count):
    assert count("copies_twice")["cost"] == 2 * 100 + 2 * 1024 + 3 * 1024
    assert count("transposes_by_a_tile")["cost"] == 100 + 2 * 512 + 3 * 512 + (128 + 32 * 128) + 128


def test_the_program_and_its_table_come_from_one_command(kit):
    said = kit.emucc("--count", "--run", f"-I{emulated.emulator_kit.PROGRAMS}", Program.path,
                     "--", "copies_neighbours")  # fmt: skip
    assert (said.returncode, said.stderr) == (0, "")
    heading, row = said.stdout.splitlines()
    assert heading.split() == ["kernel", "cost", "launches", "blocks", "requests", "bytes",
                               "sectors", "read", "written"]  # fmt: skip
    assert row.split() == ["copies", "2,660", "1", "16", "256", "32,768", "512", "512"]


def test_a_program_that_counts_nothing_is_told_how_to(tmp_path, kit):
    done = kit.call("python3", Path(count_kernels.__file__), "--", "true")
    assert done.returncode == 3
    assert "no kernel was counted; hint: emucc.py --count" in done.stderr
