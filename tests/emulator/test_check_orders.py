"""The checked build knows what orders accesses: fences, atomics, volatile flags, barriers."""

from pathlib import Path

import pytest

import checked

FOLDER = Path(__file__).resolve().parents[1] / "emulator" / "checked"
SOURCE = FOLDER / "orders.cu"
RIGHT = (
    "tries_a_lock",
    "waits_for_a_flag",
    "last_block_adds_up",
    "swaps_the_smallest",
    "returns_before_and_in_the_loop",
    "takes_turns",
    "blocks_take_turns",
    "looks_back",
    "waits_for_a_warp",
    "warps_take_turns",
)
# The kind of each bug, and the comment at the end of its line.
WRONG = {
    "unlocks_without_a_fence": ("race global", "no fence before the lock is free"),
    "sets_a_flag_without_a_fence": ("race global", "perhaps not written yet"),
    "counts_in_volatile": ("race global", "not atomic"),
    "counts_behind_a_fence": ("race global", "not atomic behind a fence"),
    "takes_a_turn_without_a_fence": ("race global", "perhaps not seen"),
    "looks_whose_turn_it_is": ("race global", "nobody waited"),
    "waits_for_a_warp_without_a_fence": ("race shared", "perhaps not there"),
    "adds_in_step": ("race shared", "by lanes in step"),
    "fences_but_asks_nobody": ("race global", "perhaps read before"),
    "shifts": ("race global", "of another block"),
    "leaves_the_loop": ("barrier not reached", "of those that are left"),
}


class AtFileScope:
    """The same of shared_at_file_scope.cu."""

    path, name, fixed = FOLDER / "shared_at_file_scope.cu", "shared_at_file_scope", False


@pytest.fixture(scope="module")
def kit(tmp_path_factory):
    made = checked.CheckedKit(tmp_path_factory.mktemp("orders"))
    made.build_library()
    return made


@pytest.fixture(scope="module")
def found(kit):
    """Gives kind and line of what is found in a case."""
    cases = kit.cases(SOURCE)

    def run(*words):
        findings = cases(*words)
        return {(f.kind, f.at.line) for f in findings}

    return run


def line_of(text):
    """The number of the line that ends with a comment."""
    lines = SOURCE.read_text().split("\n")
    return 1 + next(i for i, line in enumerate(lines) if line.endswith(f"// {text}"))


@pytest.mark.parametrize("memory", ["device", "managed"])
@pytest.mark.parametrize("case", RIGHT)
def test_what_is_ordered_is_not_accused(found, case, memory):
    assert found(case, memory) == set()


@pytest.mark.parametrize("order", ["0", "5"])
def test_a_shared_variable_at_file_scope_is_each_blocks_own(kit, order):
    kit.build_program(AtFileScope)
    findings, done = kit.findings(AtFileScope, EMULATOR_SHUFFLE=order)
    assert done.stdout == "0 wrong\n"
    assert [f.kind for f in findings] == []


@pytest.mark.parametrize("memory", ["device", "managed"])
@pytest.mark.parametrize("case", WRONG)
def test_what_nothing_orders_is_found(found, case, memory):
    kind, comment = WRONG[case]
    assert found(case, memory) == {(kind, line_of(comment))}
