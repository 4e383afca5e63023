"""What did not end once gets less time later, whichever side it is on."""

import pytest

from grader.checks.harness.compare import Failure
from grader.course.rubric import load_rubric
from grader.grading.hangs import Hangs
from grader.student.remote import ChildTimeout

ROW = next(row for row in load_rubric("default").rows if row.name == "relu")


@pytest.mark.parametrize("needs_build", [True, False])
def test_a_check_after_one_that_did_not_end_has_a_quarter_of_its_time(needs_build):
    hangs = Hangs()
    assert hangs.seconds(ROW, needs_build) == ROW.seconds
    hangs.note(ROW, ChildTimeout(ROW.seconds, "relu"), needs_build, False)
    assert hangs.seconds(ROW, needs_build) == ROW.seconds / 4
    assert hangs.seconds(ROW, not needs_build) == ROW.seconds


@pytest.mark.parametrize("needs_build", [True, False])
def test_a_wrong_value_takes_nobody_s_time(needs_build):
    hangs = Hangs()
    hangs.note(ROW, Failure("wrong"), needs_build, False)
    assert hangs.seconds(ROW, needs_build) == ROW.seconds
