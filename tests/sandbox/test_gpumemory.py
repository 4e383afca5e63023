"""A GPU whose memory runs out: by whom, as the driver tells."""

import os
import sys
import types

import pytest

from grader.building import tree as build
from grader.checks.harness.compare import Failure
from grader.grading.runner import grade
from grader.report.model import ERROR, FAIL, PASS
from grader.sandbox import gpu_memory
from grader.sandbox.gpu_memory import GIB, MOST, Meter, wait_for_room
from grader.sandbox.limits import LimitError, OutOfMemory
from kit_grading import KIT, options

SAID = Failure("cudaMalloc: out of memory")
WRONG = Failure("1 of 2 elements differ")


class Driver(types.ModuleType):
    """NVML of a machine with GPUs of 80 GiB: what is free, and who holds how much."""

    class NVMLError(Exception):
        pass

    def __init__(self, free, **users):
        super().__init__("pynvml")
        self.free = [each * GIB for each in free]
        self.users = [(int(pid.removeprefix("p")), held) for pid, held in users.items()]
        self.nvmlInit = lambda: None
        self.nvmlDeviceGetCount = lambda: len(self.free)
        self.nvmlDeviceGetHandleByIndex = lambda number: number

    def nvmlDeviceGetMemoryInfo(self, number):
        return types.SimpleNamespace(free=self.free[number], total=80 * GIB)

    def nvmlDeviceGetComputeRunningProcesses(self, number):
        if number > 0:
            raise self.NVMLError("not supported")
        return [types.SimpleNamespace(pid=p, usedGpuMemory=held) for p, held in self.users]


@pytest.fixture
def machine(monkeypatch):
    """A function: gives this machine such GPUs."""

    def give(free, **users):
        driver = Driver(free, **users)
        monkeypatch.setitem(sys.modules, "pynvml", driver)
        gpu_memory._nvml.cache_clear()
        return driver

    yield give
    gpu_memory._nvml.cache_clear()


def test_only_what_the_child_holds_counts(machine):
    machine([70, 3], p11=2 * GIB, p12=GIB, p99=60 * GIB)
    meter = Meter()
    meter.look([11, 12, 13])
    assert (meter.held, meter.free) == (3 * GIB, 3 * GIB)


def test_a_child_that_holds_too_much_is_ended(machine):
    machine([40], p11=MOST + 1)
    with pytest.raises(LimitError) as caught:
        Meter().look([11])
    assert caught.value.kind == "gpu_memory"


def test_the_driver_may_not_tell_who_holds_what(machine):
    driver = machine([40], p11=0)
    driver.users = [(11, None)]
    meter = Meter()
    meter.look([11])
    assert (meter.held, meter.free) == (0, 40 * GIB)


def test_without_a_driver_there_is_nothing_to_see(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    gpu_memory._nvml.cache_clear()
    meter = Meter()
    meter.look([os.getpid()])
    assert (meter.held, meter.free) == (0, None)
    assert meter.was_full(SAID) and not meter.was_full(WRONG)
    wait_for_room(0.01)
    gpu_memory._nvml.cache_clear()


@pytest.mark.parametrize(
    ("free", "held", "error", "full"),
    [
        (0, 1, WRONG, True),  # on a full GPU anything may fail
        (2, 1, WRONG, False),
        (2, 1, SAID, True),
        (60, 1, SAID, False),  # who asks for more than there is
        (0, 70, SAID, False),  # who filled it
        (0, 1, None, False),
    ],
)
def test_whose_fault_it_is(machine, monkeypatch, free, held, error, full):
    monkeypatch.setattr(gpu_memory, "MOST", 80 * GIB)
    machine([free], p11=held * GIB)
    meter = Meter()
    meter.look([11])
    assert meter.was_full(error) is full
    if error is not None:
        assert isinstance(meter.judged(error), OutOfMemory) is full


def test_it_is_waited_for_room(machine, monkeypatch):
    driver, slept = machine([1]), []
    monkeypatch.setattr(gpu_memory.time, "sleep", lambda seconds: slept.append(driver.free.pop()))
    monkeypatch.setattr(driver, "nvmlDeviceGetMemoryInfo", lambda number: _of(driver))
    gpu_memory._nvml()
    driver.free = [30 * GIB, GIB, GIB]
    wait_for_room()
    assert len(slept) == 2


def _of(driver):
    return types.SimpleNamespace(free=driver.free[-1], total=80 * GIB)


def graded(monkeypatch, *outcomes):
    """The result of a check on a real GPU that ends so, run by run, having looked at the GPU."""
    ran = []

    def check(context):
        """ends as told"""
        ran.append(context.tree)
        context.view.gpu.look([os.getpid()])
        if outcomes[len(ran) - 1] is not None:
            raise outcomes[len(ran) - 1]

    monkeypatch.setattr(build, "backend_of", lambda tree: "cuda")
    monkeypatch.setattr(wait_for_room, "__defaults__", (0.1,))
    monkeypatch.setattr(
        "grader.grading.runner.checks_of", lambda course: {"topological_order": check}
    )
    report = grade(KIT / "solution", options(only=("topological_order",)))
    (result,) = (r for r in report.results if r.check == "topological_order")
    assert len(ran) == len(outcomes)
    return result


def test_memory_that_others_hold_for_a_while_costs_nothing(machine, monkeypatch):
    machine([0])
    assert graded(monkeypatch, SAID, None).status == PASS


def test_memory_that_others_keep_is_the_machines(machine, monkeypatch):
    machine([0])
    result = graded(monkeypatch, SAID, WRONG)
    assert result.status == ERROR
    assert "the GPU ran out of memory" in result.message
    assert "nvidia-smi" in result.message


def test_who_fails_with_room_to_spare_fails(machine, monkeypatch):
    machine([70])
    assert graded(monkeypatch, SAID).status == FAIL
