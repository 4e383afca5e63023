"""The checked build tells which lanes and barriers meet, also where two stand on one line."""

from pathlib import Path

import pytest

import checked

SOURCE = Path(__file__).resolve().parents[1] / "emulator" / "checked" / "lanes.cu"
RIGHT = (
    "puts_two_aside",
    "adds_up_half_a_warp",
    "asks_each_lane",
    "votes_after_a_return",
    "comes_there_in_two_ways",
    "meets_at_what_is_unrolled",
)
# The kind of each bug, the comment at the end of its line, and what its detail says.
ABSENT, MISSING = "shuffle from an absent lane", "lanes missing"
UNNAMED = "lane not in its mask"
WRONG = {
    "takes_after_a_shuffle": (ABSENT, "first is fine", "lane 20 has returned"),
    "adds_after_a_shuffle": (ABSENT, "adds", "lane 2 has returned"),
    "takes_from_unnamed": (ABSENT, "not in the mask", "the mask does not name lane 20"),
    "swaps_with_unnamed": (ABSENT, "the other half", "the mask does not name lane 16"),
    "shuffles_in_both_branches": (MISSING, "not one", None),
    "does_not_name_itself": (UNNAMED, "of the others", "the mask is 0xffff0000"),
    "votes_without_itself": (UNNAMED, "of the even ones", "the mask is 0x55555555"),
    "waits_in_both_branches": ("barriers of two warps", "two barriers", None),
    "waits_in_both_halves": ("different barriers", "of one warp", None),
}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Gives kind, line and detail of what is found in a case."""
    kit = checked.CheckedKit(tmp_path_factory.mktemp("lanes"))
    kit.build_library()
    cases = kit.cases(SOURCE)

    def run(case):
        findings = cases(case)
        return {(f.kind, f.at.line, f.detail) for f in findings}

    return run


@pytest.mark.parametrize("case", RIGHT)
def test_what_is_right_is_not_accused(found, case):
    assert found(case) == set()


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_found(found, case):
    kind, comment, detail = WRONG[case]
    lines = SOURCE.read_text().split("\n")
    line = 1 + next(i for i, text in enumerate(lines) if text.endswith(f"// {comment}"))
    assert found(case) == {(kind, line, detail)}
