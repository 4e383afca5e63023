"""The limits of a child, by figures that are made up: at a limit it goes on, over it it ends."""

import dataclasses
from pathlib import Path
from types import SimpleNamespace

import pytest

from grader.sandbox import usage, watch
from grader.sandbox.isolation import View
from grader.sandbox.limits import MOST_WAITING, LimitError, Limits, Starved
from grader.sandbox.usage import Budget, Unseen
from grader.sandbox.watch import Watch

LIMITS = Limits(wall=10, cpu=3, memory=1000, disk=400, processes=5, mappings=70)


@pytest.fixture
def used(monkeypatch):
    """What a child uses: two processes of one thread, and nothing else."""
    figures = SimpleNamespace(
        processes={7: 1, 8: 1}, cpu=0.0, memory=0, disk=0, scratch=(0, None),
        unseen=Unseen(0, 0, 0, 0),
    )  # fmt: skip
    for name in ("processes", "cpu", "disk", "scratch", "unseen"):
        monkeypatch.setattr(usage, name, lambda *_, name=name: getattr(figures, name))
    monkeypatch.setattr(usage, "memory", lambda table, more: figures.memory + more)
    monkeypatch.setattr(watch, "LOOK", 0)
    return figures


def watching(limits=LIMITS, **view):
    return Watch(7, limits, View(**view), SimpleNamespace(path=Path("/home")))


@pytest.mark.parametrize(
    ("kind", "most", "over"),
    [
        ("processes", {"processes": {7: 2, 8: 3}}, {"processes": {7: 3, 8: 3}}),
        ("cpu", {"cpu": 3.0}, {"cpu": 3.01}),
        ("memory", {"memory": 1000}, {"memory": 1001}),
        (
            "memory",
            {"memory": 900, "unseen": Unseen(100, 0, 0, 0)},
            {"unseen": Unseen(101, 0, 0, 0)},
        ),
        (
            "memory",
            {"memory": 900, "unseen": Unseen(0, 0, 100, 0)},
            {"unseen": Unseen(0, 0, 101, 0)},
        ),
        ("mappings", {"unseen": Unseen(0, 0, 0, 70)}, {"unseen": Unseen(0, 0, 0, 71)}),
        ("memory", {"memory": 900, "scratch": (100, 3)}, {"memory": 900, "scratch": (101, 3)}),
        ("disk", {"disk": 400}, {"disk": 401}),
        ("disk", {"disk": 300, "unseen": Unseen(0, 100, 0, 0)}, {"unseen": Unseen(0, 101, 0, 0)}),
        ("disk", {"scratch": (399, 3)}, {"scratch": (400, 3)}),  # a full file system grows no more
    ],
)
def test_a_child_ends_over_its_limit_and_not_at_it(used, kind, most, over):
    child = watching()
    vars(used).update(most)
    child.look()
    vars(used).update(over)
    with pytest.raises(LimitError) as caught:
        child.look()
    assert caught.value.kind == kind
    none = dict.fromkeys(("cpu", "memory", "disk", "processes", "mappings"))
    free = dataclasses.replace(LIMITS, **none)
    watching(free).look()


def test_only_new_seconds_are_taken_from_the_budget_and_it_may_be_spent_whole(used):
    child = watching(budget=Budget(2.0))
    for used.cpu in (1.5, 1.5, 1.0, 2.0):
        child.look()
    used.cpu = 2.01
    with pytest.raises(LimitError) as caught:
        child.look()
    assert caught.value.kind == "budget"


def test_the_most_that_a_child_was_seen_to_hold_is_remembered(used):
    child = watching()
    for used.memory in (10, 500, 20):
        child.look()
    assert child.memory == 500


def test_nothing_is_measured_before_it_is_time(used, monkeypatch):
    monkeypatch.setattr(watch, "LOOK", 1000)
    child = watching()
    used.cpu = 1000.0
    child.look()


def test_the_clock_stands_still_while_a_child_waits_but_not_without_end(monkeypatch):
    child = watching()
    monkeypatch.setattr(watch.time, "monotonic", lambda: 1000.0)
    child._waiting.seconds = 8.0
    assert child.now() == 992
    child._waiting.seconds = 1e6
    assert child.now() == 1000 - 10 * MOST_WAITING


def test_the_clock_stands_still_while_the_grader_is_stopped(monkeypatch):
    child = watching()
    monkeypatch.setattr(watch.time, "monotonic", lambda: 1000.0)
    child._pulse.stopped = 600.0
    assert child.now() == 400


def test_who_lost_more_time_than_is_made_up_for_was_not_too_slow():
    child = watching()
    child._waiting.seconds = 10.0 * MOST_WAITING
    assert type(child.time_is_up()) is TimeoutError
    child._waiting.seconds += 0.1
    assert str(child.time_is_up()).startswith("other processes kept this one from the processor")
    assert isinstance(child.time_is_up(), Starved)


def test_limits_in_the_words_of_the_kernel():
    limits = Limits(cpu=2.5, processes=9, files=None, file_size=None)
    fixed = [["CORE", 0, 0], ["MSGQUEUE", 0, 0], ["SIGPENDING", 1024, 1024]]
    fixed.append(["MEMLOCK", 65536, 65536])
    assert limits.as_rlimits(False) == [*fixed, ["CPU", 3, 4]]
    assert limits.as_rlimits(True) == [*fixed, ["CPU", 3, 4], ["NPROC", 9, 9]]
    more = Limits(cpu=None, files=5, file_size=6, processes=None)
    assert more.as_rlimits(True) == [*fixed, ["NOFILE", 5, 5], ["FSIZE", 6, 6]]


@pytest.mark.parametrize(
    ("limits", "free", "disk", "room"),
    [
        (Limits(disk=100, memory=1000), 150, 75, 75),
        (Limits(disk=100, memory=1000), 500, 100, 100),
        (Limits(disk=900, memory=1000), 5000, 900, 500),
        (Limits(disk=None, memory=None), 500, None, 2 << 30),
    ],
)
def test_half_of_a_disk_is_left_to_others_and_half_of_the_memory_to_processes(
    limits, free, disk, room
):
    assert limits.within(free).disk == disk
    assert limits.within(free).room == room
