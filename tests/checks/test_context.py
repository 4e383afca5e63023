"""What a context makes of answers and sizes, without a child."""

from types import SimpleNamespace

import pytest

from grader.checks.harness.compare import Failure
from grader.checks.harness.context import Session, _divided
from grader.student.remote import Opaque


def sequence(is_list, answer):
    """What a session says of a value in the child that should be a list."""
    fetched = iter([is_list, answer])
    remote = SimpleNamespace(
        builtin=lambda name: lambda *_: name, fetch=lambda _: next(fetched), len=lambda _: 3
    )
    return Session.sequence(SimpleNamespace(remote=remote), "proxy", "the gradient of relu", "node")


@pytest.mark.parametrize(
    ("answer", "kind", "hint"),
    [
        (Opaque("Node", "<node>"), "Node", "return a list, one node for each input"),
        (3, "int", "return a list, one node for each input"),
        (None, "NoneType", "is `return` missing?"),
    ],
)
def test_what_is_no_list_is_told_by_its_kind(answer, kind, hint):
    for no in (False, None, "yes", 1):  # a child may answer anything
        with pytest.raises(Failure) as caught:
            sequence(no, answer)
        assert caught.value.message == f"the gradient of relu is not a list but a {kind}"
        assert caught.value.hint == hint


def test_a_list_has_the_length_that_the_child_says():
    assert sequence(True, None) == 3


def test_large_sizes_are_divided_and_odd_and_small_ones_stay():
    assert _divided((99, 100, 101, 1000), 2) == (99, 51, 51, 501)
    assert _divided((3, 1000), 13) == (3, 77)
