"""Speed: what the clock's figures are worth in points, which of them are not believed, and the
batches behind them, run on the emulated GPU with times that are made up."""

import contextlib
import dataclasses
import functools
import itertools
import math
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import catalogue
import speed_check
from grader import gpu
from grader.checks import CHECKS, NotHere, pace, speed
from grader.checks.context import Context
from grader.checks.lane import Lane, Sheet, pairs
from grader.checks.outcomes import Flag
from grader.checks.pace import Lap
from grader.remote import ChildDied
from grader.results import ERROR, FAIL, PASS, SKIPPED
from grader.rubric import RubricError, load_rubric
from grader.runner import Options, grade

KIT = Path(__file__).resolve().parent.parent


def row(**more):
    first = load_rubric("default").rows[0]
    return dataclasses.replace(first, name="speed_softmax", points=1, **more)


# Points.


@pytest.mark.parametrize(
    "ratio, share",
    [(0.01, 0), (0.25, 0), (0.5, 0.5), (math.sqrt(0.5), 0.75), (1, 1), (7, 1), (0, 0), (-1, 0)],
)
def test_each_doubling_of_the_speed_is_worth_the_same(ratio, share):
    assert row(zero_ratio=0.25, full_ratio=1.0).share(ratio) == pytest.approx(share)


def test_without_ratios_passing_is_worth_all_points():
    assert row().share(0.001) == 1


RUBRIC = """title = "t"
description = "d"
files = []
sizes = "published"
[parts]
[tasks]
[[check]]
name = "{name}"
points = 1
{lines}
"""


@pytest.mark.parametrize(
    "name, lines, words",
    [
        ("speed_x", "zero_ratio = 0.5", "give both"),
        ("speed_x", "full_ratio = 0.5", "give both"),
        ("speed_x", "zero_ratio = 1\nfull_ratio = 0.5", "the first smaller"),
        ("speed_x", "zero_ratio = 1\nfull_ratio = 1", "the first smaller"),
        ("speed_x", "zero_ratio = 0\nfull_ratio = 1", "zero_ratio is 0; it is positive"),
        ("speed_x", "zero_ratio = 1\nfull_ratio = inf", "full_ratio is inf; it is positive"),
        ("speed_x", "zero_ratio = 1\nfull_ratio = nan", "full_ratio is nan; it is positive"),
        ("relu", "zero_ratio = 0.5\nfull_ratio = 1", "only those of speed"),
    ],
)
def test_ratios_that_make_no_sense_are_refused(tmp_path, name, lines, words):
    path = tmp_path / "rubric.toml"
    path.write_text(RUBRIC.format(name=name, lines=lines))
    with pytest.raises(RubricError, match=words):
        load_rubric(str(path))


def test_ratios_are_read(tmp_path):
    path = tmp_path / "rubric.toml"
    path.write_text(RUBRIC.format(name="speed_x", lines="zero_ratio = 0.25\nfull_ratio = 0.75"))
    (read,) = load_rubric(str(path)).rows
    assert (read.zero_ratio, read.full_ratio) == (0.25, 0.75)


# The clock.


class Fake:
    """A child whose calls take `seconds`, after `overhead` for a batch."""

    def __init__(self, seconds, overhead=0.003, events=None, diary=None, name=""):
        self.seconds, self.overhead, self.events = seconds, overhead, events
        self.batches, self.diary, self.name = [], diary if diary is not None else [], name

    def batch(self, calls):
        self.batches.append(calls)
        self.diary.append(self.name)
        wall = self.overhead + calls * self.seconds
        return Lap(wall, None if self.events is None else calls * self.events)


def raced(student, reference, most=64, **more):
    return pace.race(student, reference, pace.reference_alone(reference, most), most, **more)


@pytest.mark.parametrize("overhead", [0, 0.001, 1])
def test_what_a_batch_costs_in_any_case_falls_out(overhead):
    found = pace.measure(Fake(2e-4, overhead), 10)
    assert (found.call.wall, found.cost) == pytest.approx((2e-4, overhead))


def test_the_ratio_is_the_reference_s_time_over_the_submission_s():
    assert raced(Fake(4e-4), Fake(1e-4)).ratio == pytest.approx(0.25)


class Lingering(Fake):
    """Makes short batches last, as a kernel that waits for the next call can."""

    def batch(self, calls):
        lap = super().batch(calls)
        return Lap(lap.wall + 0.005, lap.device) if calls == pace.SHORT else lap


def test_short_batches_that_last_gain_the_submission_nothing():
    assert raced(Lingering(1e-3), Fake(1e-3)).ratio == pytest.approx(1)


def test_what_the_submission_s_batches_cost_more_is_its_own_time():
    found = raced(Fake(1e-3, overhead=0.015), Fake(1e-3))
    calls = pace.SHORT + found.more[0]
    assert found.student[0].wall == pytest.approx(1e-3 + 0.012 / calls)


def test_one_batch_that_was_held_up_decides_nothing():
    class HeldUp(Fake):
        def batch(self, calls):
            lap = super().batch(calls)
            return Lap(lap.wall + 0.05 * (len(self.batches) == 6), lap.device)

    for student, reference in ((HeldUp(1e-3), Fake(1e-3)), (Fake(1e-3), HeldUp(1e-3))):
        found = raced(student, reference)
        pace.require_plausible(found, 1e-4, "")
        assert found.ratio == pytest.approx(1)


@pytest.mark.parametrize("seconds, more", [(1e-3, 10), (1, 4), (1e-7, 64), (0.0026, 4)])
def test_long_batches_fill_the_window_within_limits(seconds, more):
    assert pace.warm_up(Fake(seconds, overhead=0), 64) == pytest.approx(more, abs=1)


def test_no_batch_has_more_calls_than_a_case_allows():
    fake = Fake(1e-7)
    raced(fake, Fake(1e-7), most=3)
    assert max(fake.batches) == pace.SHORT + 3


def test_both_are_timed_in_turn():
    diary = []
    student, reference = Fake(1e-3, diary=diary, name="s"), Fake(1e-3, diary=diary, name="r")
    raced(student, reference)
    turns = "".join(diary)
    assert turns.endswith("srr" * pace.ROUNDS)
    assert "s" not in turns[: 3 + 2 * pace.ALONE]  # the reference alone comes first


def test_a_slow_submission_is_timed_in_fewer_rounds():
    now = iter([0.0, 1e3])
    found = raced(Fake(1.0), Fake(1e-3), clock=lambda: next(now))
    assert len(found.student) == len(found.reference) == pace.LEAST_ROUNDS


def test_events_that_took_longer_than_the_grader_waited_are_made_up():
    with pytest.raises(Flag, match="by the grader's clock"):
        raced(Fake(1e-3, events=9e-3), Fake(1e-3))


@pytest.mark.parametrize(
    "student, words",
    [
        (Fake(0.9e-4), "a call takes 90.0 us; the memory of this GPU needs 100.0 us"),
        (Fake(1e-3, events=0.5e-4), "by the device's events, a call takes 50.0 us"),
        (Fake(0), "nothing was measured"),
        (Fake(-1e-6), "nothing was measured"),
    ],
)
def test_a_time_that_cannot_be_true_is_flagged(student, words):
    found = raced(student, Fake(1e-3))
    with pytest.raises(Flag, match=words):
        pace.require_plausible(found, 1e-4, "the memory")
    assert pace.figures(found)["student_us"]["median"] == pytest.approx(student.seconds * 1e6)


def test_a_submission_that_slows_the_reference_down_is_flagged():
    reference = Fake(1e-3)
    alone = pace.reference_alone(reference, 64)
    reference.seconds = 1.5e-3
    found = pace.race(Fake(1e-3), reference, alone, 64)
    with pytest.raises(Flag, match=r"1\.50 times as long beside the submission"):
        pace.require_plausible(found, 0, "")


def test_plausible_times_pass_and_their_spread_is_told():
    found = raced(Fake(2e-4, events=1.9e-4), Fake(1e-4, events=0.9e-4))
    pace.require_plausible(found, 1e-4, "the memory")
    told = pace.figures(found)
    assert told["ratio"]["median"] == pytest.approx(0.5)
    assert told["reference_us"] == pytest.approx({"min": 100, "median": 100, "max": 100})
    assert told["student_events_us"]["median"] == pytest.approx(190)
    assert told["rounds"] == pace.ROUNDS


# The GPU.

H200 = gpu.Properties("NVIDIA H200", "0000:01:00.0", 132, 128, 1.98e9, 3.201e9, 6144, 62914560)


@pytest.mark.parametrize(
    "traffic, operations, floor",
    [
        (0, 0, 0),
        (62914560, 0, 0),  # all of it may be in the cache
        (62914560 + 4917e9, 0, 1.0),
        (0, 66.9e12, 1.0),
        (62914560 + 4917e9, 133.8e12, 2.0),
    ],
)
def test_the_floor_is_the_slower_of_memory_and_arithmetic(traffic, operations, floor):
    assert H200.floor(traffic, operations) == pytest.approx(floor, rel=1e-3)


def test_an_unknown_gpu_has_no_floor():
    assert gpu.Properties().floor(1e12, 1e15) == 0


def test_without_the_optional_packages_notes_say_what_is_not_known(monkeypatch):
    monkeypatch.setitem(sys.modules, "pycuda.driver", None)
    monkeypatch.setitem(sys.modules, "pynvml", None)
    found = gpu.find()
    assert found.uuid == "" and found.properties == gpu.Properties() and found.state() == {}
    assert "pycuda is not installed" in found.notes[0]
    assert "nvidia-ml-py is not installed" in found.notes[1]


class FakeError(Exception):
    pass


def refuses(handle):
    raise FakeError


def fake_packages(monkeypatch, **more):
    names = {
        "MULTIPROCESSOR_COUNT": 132,
        "CLOCK_RATE": 1980000,
        "MEMORY_CLOCK_RATE": 3201000,
        "GLOBAL_MEMORY_BUS_WIDTH": 6144,
        "L2_CACHE_SIZE": 62914560,
    }
    device = types.SimpleNamespace(
        name=lambda: "NVIDIA H200", pci_bus_id=lambda: "0000:01:00.0",
        compute_capability=lambda: (9, 0), total_memory=lambda: 0, get_attribute=names.get,
    )  # fmt: skip
    attributes = types.SimpleNamespace(**{name: name for name in names})
    pycuda = types.SimpleNamespace(
        init=lambda: None, Device=lambda number: device, device_attribute=attributes
    )
    nvml = types.SimpleNamespace(
        NVMLError=FakeError, NVML_CLOCK_SM=1, NVML_CLOCK_MEM=2, nvmlInit=lambda: None,
        nvmlDeviceGetHandleByPciBusId=lambda bus: bus, nvmlDeviceGetUUID=lambda bus: b"GPU-1",
        nvmlDeviceGetClockInfo=lambda handle, which: 1000 * which,
        nvmlDeviceGetPowerUsage=lambda handle: 123456,
        nvmlDeviceGetCurrentClocksThrottleReasons=lambda handle: 0x01 | 0x04 | 0x40,
        nvmlDeviceGetComputeRunningProcesses=refuses, **more,
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "pycuda.driver", pycuda)
    monkeypatch.setitem(sys.modules, "pynvml", nvml)


def test_properties_come_from_pycuda_and_the_uuid_from_nvml(monkeypatch):
    fake_packages(monkeypatch)
    found = gpu.find()
    assert (found.uuid, found.properties, found.notes) == ("GPU-1", H200, [])


def test_what_nvml_does_not_answer_is_left_out(monkeypatch):
    fake_packages(monkeypatch)
    assert gpu.find().state() == {
        "clock_mhz": 1000,
        "memory_clock_mhz": 2000,
        "power": 123.456,
        "throttling": ["power cap", "heat, by the hardware"],
    }


def test_a_driver_that_fails_is_a_note_and_no_failure(monkeypatch):
    fake_packages(monkeypatch, nvmlDeviceGetHandleByIndex=lambda number: number)
    broken = types.SimpleNamespace(init=lambda: refuses(None))
    monkeypatch.setitem(sys.modules, "pycuda.driver", broken)
    found = gpu.find()
    assert found.uuid == "GPU-1"
    assert found.notes == ["pycuda fails: : no floor for times, no size of the L2 cache"]


# Whose turn it is.

HOLD = """
import sys
from pathlib import Path
from grader.gpu import turn
with turn("GPU-1", 60, folder=Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the turn, until its input ends."""
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, cwd=KIT, text=True) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_turn_that_somebody_has_is_waited_for_with_a_word_and_a_limit(holder, tmp_path):
    said = []
    with (
        pytest.raises(gpu.GpuBusy, match=r"not free for timing within 0\.1 s"),
        gpu.turn("GPU-1", 0.1, said.append, tmp_path),
    ):
        pass
    assert len(said) == 1 and "somebody else is timing" in said[0]


def test_another_gpu_is_free(holder, tmp_path):
    with gpu.turn("GPU-2", 0, folder=tmp_path):
        pass


@pytest.mark.parametrize("kill", [False, True])
def test_a_turn_ends_with_its_process_however_that_ends(holder, tmp_path, kill):
    def end(words):
        holder.kill() if kill else holder.stdin.close()

    with gpu.turn("GPU-1", 60, end, tmp_path):
        assert holder.wait(60) == (-9 if kill else 0)


def test_a_turn_is_given_back(tmp_path):
    for _ in range(2):
        with gpu.turn("", 0, folder=tmp_path):
            pass
    assert [path.name for path in tmp_path.iterdir()] == ["dlsys-gpu-unknown.lock"]


# The arrays.


def test_a_sheet_knows_what_was_copied_and_changed():
    block = np.random.default_rng(1).uniform(-1, 1, (5, 7)).astype(np.float32)
    sheet, whole = Sheet(block, 3, 13), np.concatenate([block[3:], block, block, block])[:13]
    sheet.change(11, 2, np.float32([8, 9]))
    sheet.change(11, 3, np.float32([5]))
    sheet.change(0, 0, np.float32([4]))
    whole[11, 2:4], whole[0, 0] = (8, 5), 4
    assert np.array_equal(sheet.rows(9, 13), whole[9:13])
    assert np.array_equal(sheet.wide(), whole)
    assert np.allclose(sheet.column_sums(), whole.sum(axis=0, dtype=np.float64))
    assert np.allclose(sheet.column_sums(np.abs), np.abs(whole).sum(axis=0, dtype=np.float64))
    assert not np.any(block == 8)


def test_two_matrices_never_meet_twice_and_take_turns():
    met = [tuple(pairs(10, 2, number)) for number in range(100)]
    assert len(set(met)) == 100
    assert all(a[0] != b[0] and a[1] != b[1] for a, b in itertools.pairwise(met))


def test_the_products_of_a_submission_are_fewer_than_there_are_pairs():
    case = speed.speed_matrix_multiply.__wrapped__(context("cuda"))
    fake = Fake(1e-7)
    raced(fake, Fake(1e-7), case.most)
    assert len(fake.batches) == 3 + pace.ROUNDS
    assert sum(fake.batches) <= case.pool**2


def context(backend):
    return Context(Path(), load_rubric("default"), backend, "5eed", "speed_softmax", 60)


@pytest.mark.parametrize("name", speed.CHECKS)
def test_timed_arrays_are_larger_than_what_a_cache_holds(name):
    case = speed.CHECKS[name].__wrapped__(context("cuda"))
    if not case.operations > 100 * case.traffic / 12:
        assert case.traffic > 4 * H200.l2
    assert sum(4 * a * b for a, b in case.inputs) * case.pool < 2 << 30


@pytest.mark.parametrize("name", speed.CHECKS)
def test_on_the_emulated_gpu_speed_is_not_measured(name):
    with pytest.raises(NotHere, match=r"^speed is measured on a real GPU only$"):
        CHECKS[name](context("emulated"))


def test_a_gpu_with_too_little_memory_measures_no_speed(monkeypatch):
    small = gpu.Gpu(properties=dataclasses.replace(H200, memory=2 << 30))
    monkeypatch.setattr(gpu, "find", lambda: small)
    with pytest.raises(NotHere, match=r"this one has 2\.0"):
        speed.speed_matrix_elementwise_add(context("cuda"))


def test_a_gpu_that_is_never_free_is_nobody_s_failure(monkeypatch, holder, tmp_path):
    turn = functools.partial(gpu.turn, say=lambda words: None, folder=tmp_path)
    monkeypatch.setattr(gpu, "turn", turn)
    monkeypatch.setattr(gpu, "find", lambda: gpu.Gpu("GPU-1", H200))
    monkeypatch.setattr(speed, "TURN", 0.1)
    with pytest.raises(Flag, match="not free for timing"):
        speed.speed_softmax(context("cuda"))


class Dying:
    """A reference that does not come up."""

    def __init__(self, *_, **__):
        raise ChildDied(-11, "laying out arrays")


def test_a_reference_that_fails_is_not_the_submission_s_failure(monkeypatch):
    monkeypatch.setattr(speed, "Lane", Dying)
    ctx = context("emulated")
    ctx.reference = lambda: contextlib.nullcontext(KIT / "solution")
    monkeypatch.setattr(speed, "BACKENDS", ("emulated",))
    with pytest.raises(Flag, match="the reference failed: the process was killed"):
        speed.speed_softmax(ctx)


# From end to end, with times that are made up.


class Made(Lane):
    """Carries out its batches, and says they took what `times`, set on it, says of the kernel."""

    def batch(self, calls):
        super().batch(calls)
        own, events = self.times[self.case.kernel]
        return Lap(0.01 + calls * (own if self.verified else 1e-3), events)


@pytest.fixture(scope="module")
def emulated():
    """The checks of speed run on the emulated GPU, where kernels need not have been right."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(speed, "BACKENDS", ("emulated",))
        patch.setattr(speed, "Lane", Made)
        yield


def scored():
    rubric = speed_check.scored()
    rows = [
        dataclasses.replace(row, requires=("build",)) if row.name in speed.CHECKS else row
        for row in rubric.rows
    ]
    return Options(dataclasses.replace(rubric, rows=tuple(rows)), "emulated", only=speed.CHECKS)


@pytest.fixture(scope="module")
def report(emulated):
    Made.times = {
        "matrix_multiply": (2e-3, None),
        "softmax": (1e-3, 9.0),
        "matrix_elementwise_add": (5e-3, None),
        "reduce_sum_axis_zero": (1e-3, None),
    }
    return grade(KIT / "solution", scored())


def outcome(report, check):
    return next(result for result in report.results if result.check == check)


def test_half_the_speed_is_half_the_points(report):
    result = outcome(report, "speed_matrix_multiply")
    assert (result.status, result.score, result.points) == (PASS, 0.5, 1), result
    told = result.facts["speed"]
    assert told["summary"].startswith("matrix_multiply: 0.50 times the reference's speed")
    assert told["student_us"]["median"] == pytest.approx(2000)


def test_the_speed_of_the_reference_is_all_points(report):
    result = outcome(report, "speed_reduce_sum_axis_zero")
    assert (result.status, result.score) == (PASS, 1), result


def test_too_slow_for_any_points_is_a_failure_with_its_figures(report):
    result = outcome(report, "speed_matrix_elementwise_add")
    assert (result.status, result.score) == (FAIL, 0)
    assert result.message == "0.20 of the reference's speed; points begin above 0.25"
    assert result.facts["speed"]["reached"]["gigabytes_per_second"] > 0


def test_a_time_that_cannot_be_true_leaves_the_points_open(report):
    result = outcome(report, "speed_softmax")
    assert (result.status, result.score, result.points) == (ERROR, 0, 1)
    assert "the device's events say" in result.message and result.details == []
    assert report.has_errors


def test_the_outputs_of_timed_calls_are_verified(emulated, tmp_path):
    Made.times = dict.fromkeys(
        ("matrix_multiply", "softmax", "matrix_elementwise_add", "reduce_sum_axis_zero"),
        (1e-3, None),
    )
    # What needs streams that overlap is seen on a real GPU alone.
    cheats = [m for m in catalogue.mutants() if m.check in speed.CHECKS and "stream" not in m.name]
    edits = tuple(
        (file, find, text.replace("10000000", "3000").replace("3000000", "3000"))
        for cheat in cheats
        for file, find, text in cheat.edits
    )
    together = dataclasses.replace(cheats[0], edits=edits)
    found = grade(catalogue.write(together, tmp_path), scored())
    assert len(cheats) == 3
    for cheat in cheats:
        assert dataclasses.replace(cheat, edits=()).verdict(found) == "", cheat.name
    assert outcome(found, "speed_reduce_sum_axis_zero").status == PASS


def test_points_for_speed_count_for_nobody_where_there_is_no_gpu(monkeypatch):
    monkeypatch.setattr(speed, "BACKENDS", ("cuda",))
    options = dataclasses.replace(scored(), only=("speed_softmax",))
    found = grade(KIT / "solution", options)
    result = outcome(found, "speed_softmax")
    assert (result.status, result.message) == (SKIPPED, "speed is measured on a real GPU only")
    assert (found.score, found.points) == (0, 0)
