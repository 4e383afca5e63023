"""What a student reads of an error in their process: the message, a hint, and the output's end."""

import pytest

from grader.checks.harness.compare import Failure
from grader.report.wording import explain, missing_task, tail
from grader.student.remote import ChildTimeout, StudentError

LAUNCH = "CUDA error: invalid configuration argument"


@pytest.mark.parametrize(
    ("kinds", "message", "hint"),
    [
        (("DeviceError",), LAUNCH, "a block has 1 to 1,024 threads, and a grid at least one block"),
        (("DeviceError",), f"{LAUNCH}\nthe block has 1,025 threads", ""),  # the emulated GPU's
        (("DeviceError",), "CUDA error: an illegal memory access was encountered", ""),
        (
            ("RecursionError",),
            "maximum recursion depth exceeded",
            "replace the recursion by a loop",
        ),
        (("SyntaxError",), "Missing parentheses in call to 'print'", "port it to Python 3"),
        (("TypeError",), "'map' object is not subscriptable", "port it to Python 3"),
        (("ValueError",), "no", ""),
    ],
)
def test_a_known_error_gets_a_hint(kinds, message, hint):
    found = explain(StudentError(kinds, message, "File x, line 1\nFile y, line 2", "relu"))
    assert found["hint"].find(hint) >= 0 and bool(found["hint"]) == bool(hint)
    assert found["details"] == [*message.split("\n")[1:], "File x, line 1", "File y, line 2"]


def test_an_unwritten_task_and_a_wrong_result_are_told_by_their_sentence_alone():
    hole = StudentError(("NotImplementedError",), "task 2.11 is not written yet", "File x", "relu")
    assert explain(hole) == {"message": "task 2.11 is not written yet"}
    assert explain(Failure("wrong", "look")) == {"message": "wrong", "hint": "look"}
    late = ChildTimeout(3, "relu")
    late.output = "one\n\ntwo\n"
    assert explain(late) == {"message": str(late), "details": ["one", "two"]}


def test_only_the_message_of_a_hole_names_a_task():
    assert missing_task("task 2.11 is not written yet") == "2.11"
    for message in ("task 2.11 is not written yet.", "task x is not written yet", ""):
        assert missing_task(message) == ""


def test_of_an_output_the_last_lines_are_kept_and_long_ones_cut():
    assert tail("\n".join(f"{n}" for n in range(20))) == [f"{n}" for n in range(8, 20)]
    assert tail("x" * 501) == ["x" * 500]
