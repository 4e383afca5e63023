"""The checked build tells an index that leaves a shared array from one that leaves its row."""

from pathlib import Path

import pytest

import checked

SOURCE = Path(__file__).resolve().parents[1] / "emulator" / "checked" / "overruns.cu"
# The kind of each bug, and the comment at the end of its line; None if nothing is wrong.
CASES = {
    "reads_one_past": ("out-of-bounds read shared", "one past"),
    "writes_into_the_next": ("out-of-bounds write shared", "is first"),
    "writes_a_row_too_many": ("out-of-bounds write shared", "a row too many"),
    "reads_the_next_row": ("row overrun", "the next row"),
    "points_to_the_end": None,
}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Gives kind, and comment of the line, of what is found in a case."""
    kit = checked.CheckedKit(tmp_path_factory.mktemp("overruns"))
    kit.build_library()
    cases = kit.cases(SOURCE)
    lines = SOURCE.read_text().split("\n")

    def run(case):
        findings = cases(case)
        return [(f.kind, lines[f.at.line - 1], f.memory) for f in findings]

    return run


@pytest.mark.parametrize("case", CASES)
def test_an_index_past_the_end_is_called_what_it_is(found, case):
    findings = found(case)
    if CASES[case] is None:
        assert findings == []
        return
    ((kind, line, memory),) = findings
    assert (kind, line.endswith(CASES[case][1])) == (CASES[case][0], True)
    assert kind == "row overrun" or memory.offset < 0 or memory.offset >= memory.size
