"""The clock that speed is measured by: which of its figures are not believed; the GPU as the
grader's own process sees it, and whose turn it is."""

import dataclasses
import functools
import subprocess
import sys
import types
from pathlib import Path

import pytest

from grader.checks.harness.child import ChildContext
from grader.checks.harness.outcomes import Flag, NotHere
from grader.checks.speed import checks, clock, gpu
from grader.checks.speed.clock import Lap
from grader.course.rubric import load_rubric

KIT = Path(__file__).resolve().parents[2]


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
    return clock.race(student, reference, clock.reference_alone(reference, most), most, **more)


@pytest.mark.parametrize("overhead", [0, 0.001, 1])
def test_what_a_batch_costs_in_any_case_falls_out(overhead):
    found = clock.measure(Fake(2e-4, overhead), 10)
    assert (found.call.wall, found.cost) == pytest.approx((2e-4, overhead))


def test_the_ratio_is_the_reference_s_time_over_the_submission_s():
    assert raced(Fake(4e-4), Fake(1e-4)).ratio == pytest.approx(0.25)


class Lingering(Fake):
    """Makes short batches last, as a kernel that waits for the next call can."""

    def batch(self, calls):
        lap = super().batch(calls)
        return Lap(lap.wall + 0.005, lap.device) if calls == clock.SHORT else lap


def test_short_batches_that_last_gain_the_submission_nothing():
    assert raced(Lingering(1e-3), Fake(1e-3)).ratio == pytest.approx(1)


def test_what_the_submission_s_batches_cost_more_is_its_own_time():
    found = raced(Fake(1e-3, overhead=0.015), Fake(1e-3))
    calls = clock.SHORT + found.more[0]
    assert found.student[0].wall == pytest.approx(1e-3 + 0.012 / calls)


def test_one_batch_that_was_held_up_decides_nothing():
    class HeldUp(Fake):
        def batch(self, calls):
            lap = super().batch(calls)
            return Lap(lap.wall + 0.05 * (len(self.batches) == 6), lap.device)

    for student, reference in ((HeldUp(1e-3), Fake(1e-3)), (Fake(1e-3), HeldUp(1e-3))):
        found = raced(student, reference)
        clock.require_plausible(found, 1e-4, "")
        assert found.ratio == pytest.approx(1)


@pytest.mark.parametrize("seconds, more", [(1e-3, 10), (1, 4), (1e-7, 64), (0.0026, 4)])
def test_long_batches_fill_the_window_within_limits(seconds, more):
    assert clock.warm_up(Fake(seconds, overhead=0), 64) == pytest.approx(more, abs=1)


def test_no_batch_has_more_calls_than_a_case_allows():
    fake = Fake(1e-7)
    raced(fake, Fake(1e-7), most=3)
    assert max(fake.batches) == clock.SHORT + 3


def test_both_are_timed_in_turn():
    diary = []
    student, reference = Fake(1e-3, diary=diary, name="s"), Fake(1e-3, diary=diary, name="r")
    raced(student, reference)
    turns = "".join(diary)
    assert turns.endswith("srr" * clock.ROUNDS)
    assert "s" not in turns[: 3 + 2 * clock.ALONE]  # the reference alone comes first


def test_a_slow_submission_is_timed_in_fewer_rounds():
    now = iter([0.0, 1e3])
    found = raced(Fake(1.0), Fake(1e-3), clock=lambda: next(now))
    assert len(found.student) == len(found.reference) == clock.LEAST_ROUNDS


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
        clock.require_plausible(found, 1e-4, "the memory")
    assert clock.figures(found)["student_us"]["median"] == pytest.approx(student.seconds * 1e6)


def test_a_submission_that_slows_the_reference_down_is_flagged():
    reference = Fake(1e-3)
    alone = clock.reference_alone(reference, 64)
    reference.seconds = 1.5e-3
    found = clock.race(Fake(1e-3), reference, alone, 64)
    with pytest.raises(Flag, match=r"1\.50 times as long beside the submission"):
        clock.require_plausible(found, 0, "")


def test_plausible_times_pass_and_their_spread_is_told():
    found = raced(Fake(2e-4, events=1.9e-4), Fake(1e-4, events=0.9e-4))
    clock.require_plausible(found, 1e-4, "the memory")
    told = clock.figures(found)
    assert told["ratio"]["median"] == pytest.approx(0.5)
    assert told["reference_us"] == pytest.approx({"min": 100, "median": 100, "max": 100})
    assert told["student_events_us"]["median"] == pytest.approx(190)
    assert told["rounds"] == clock.ROUNDS


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
from grader.checks.speed.gpu import turn
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


# What is timed.


def context(backend):
    return ChildContext(Path(), load_rubric("default"), backend, "5eed", "speed_softmax", 60)


def test_the_products_of_a_submission_are_fewer_than_there_are_pairs():
    case = checks.speed_matrix_multiply.__wrapped__(context("cuda"))
    fake = Fake(1e-7)
    raced(fake, Fake(1e-7), case.most)
    assert len(fake.batches) == 3 + clock.ROUNDS
    assert sum(fake.batches) <= case.pool**2


@pytest.mark.parametrize("name", checks.CHECKS)
def test_timed_arrays_are_larger_than_what_a_cache_holds(name):
    case = checks.CHECKS[name].__wrapped__(context("cuda"))
    if not case.operations > 100 * case.traffic / 12:
        assert case.traffic > 4 * H200.l2
    assert sum(4 * a * b for a, b in case.inputs) * case.pool < 2 << 30


def test_a_gpu_with_too_little_memory_measures_no_speed(monkeypatch):
    small = gpu.Gpu(properties=dataclasses.replace(H200, memory=2 << 30))
    monkeypatch.setattr(gpu, "find", lambda: small)
    with pytest.raises(NotHere, match=r"this one has 2\.0"):
        checks.speed_matrix_elementwise_add(context("cuda"))


def test_a_gpu_that_is_never_free_is_nobody_s_failure(monkeypatch, holder, tmp_path):
    turn = functools.partial(gpu.turn, say=lambda words: None, folder=tmp_path)
    monkeypatch.setattr(gpu, "turn", turn)
    monkeypatch.setattr(gpu, "find", lambda: gpu.Gpu("GPU-1", H200))
    monkeypatch.setattr(checks, "TURN", 0.1)
    with pytest.raises(Flag, match="not free for timing"):
        checks.speed_softmax(context("cuda"))
