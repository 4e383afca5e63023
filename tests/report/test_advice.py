"""Advice under a failed test does not say that anything is correct."""

import json
import re

import pytest

import report
from findings.kinds import WORDS

PLACE = {"file": "gone.cu", "line": 5}
WRONG, ADVICE = "out-of-bounds write global", "advice: uncoalesced access"
PRAISE = re.compile(r"correct, but|is correct|are correct|is right|are right", re.IGNORECASE)


def found(kind):
    """What the runtime writes of a kernel."""
    memory = {"name": "out", "space": "global", "size": 4000, "offset": 4000}
    return {
        "kind": kind, "count": 9, "kernel": "add", "launch": PLACE, "grid": [4, 1, 1],
        "block": [256, 1, 1], "at": PLACE, "block_index": [3, 0, 0], "thread_index": [17, 0, 0],
        "size": 4, "write": True, "other": None, "detail": None, "order": 1,
        "memory": {**memory, "allocated": PLACE, "freed": None},
    }  # fmt: skip


@pytest.mark.parametrize("kinds", [[ADVICE], [WRONG, ADVICE]], ids=["alone", "beside a finding"])
@pytest.mark.parametrize(
    "how", [{}, {"failed": "the program ended with exit status 1"}, {"ended": "it was killed"}]
)
def test_no_report_with_advice_says_that_the_program_is_correct(tmp_path, kinds, how):
    path = tmp_path / "found.jsonl"
    path.write_text("".join(json.dumps(found(kind)) + "\n" for kind in kinds))
    said = report.render(report.read_report(str(path)), **how)
    assert "Advice: this changes no value" in said
    assert PRAISE.search(said) is None
    assert ("Nothing wrong was found" in said) == (kinds == [ADVICE] and not how)


def test_no_kind_of_finding_is_told_as_correct():
    for kind, words in WORDS.items():
        assert PRAISE.search(f"{words.title} {words.cause} {words.hint}") is None, kind
