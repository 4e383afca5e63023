"""What `grader bench` times: the same computation everywhere, within a budget, with numpy alone."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dlsys
from dlsys import ndarray
from dlsys.backend import program
from grader.bench import backends, command, machine, measuring, nets, timing
from grader.bench.backends import Inputs
from grader.bench.charts import TF32
from grader.bench.operations import OPERATIONS
from grader.cli import main

KIT = Path(__file__).resolve().parents[2]
TINY = replace(
    measuring.QUICK, sizes=(2, 8), operations=OPERATIONS[:2], by_parameters=(),
    mlp=nets.Net((8, 4, 4, 3), 5), budget=1e-4, block_n=8,
)  # fmt: skip


@pytest.fixture(autouse=True)
def threads():
    """As many as before, when a test ends."""
    before = program.threads()
    yield
    program.set_threads(before)


@pytest.fixture(scope="module")
def there():
    """The libraries of this machine: the kit on a CPU and a GPU, numpy, and what is installed; and
    products in TF32."""
    found = backends.found()[0]
    found = [each for each in found if each.name != TF32]
    return [*found, backends._ours(TF32, ndarray.gpu(0), 1, tf32=True)]


def numbers(found):
    """Results of any library as numpy arrays."""
    several = found if isinstance(found, list | tuple) else [found]
    return [each.asnumpy() if hasattr(each, "asnumpy") else np.asarray(each) for each in several]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.name)
def test_every_library_computes_the_same(operation, there):
    drawn = {}
    for gradients in (False, True):
        wanted = None
        for backend in (each for each in there if each.has(operation, 8)):
            backend.begin()
            inputs = Inputs(8, backend.convert, drawn)
            found = numbers(backend.operation(operation, inputs, gradients)())
            assert found[0].shape == operation.shape(8)
            assert len(found) == (1 + operation.inputs if gradients else 1)
            wanted = wanted or found
            rtol = 1e-3 if backend.name == TF32 else 2e-5
            for got, expected in zip(found, wanted, strict=True):
                np.testing.assert_allclose(
                    got, expected, rtol=rtol, atol=2e-6, err_msg=backend.name
                )


def test_products_in_tf32_are_asked_for_as_such(monkeypatch, there):
    asked, compiled = [], dlsys.compile
    monkeypatch.setattr(
        dlsys, "compile", lambda *of, **said: asked.append(said["tf32"]) or compiled(*of, **said)
    )
    for backend in there[0], there[-1]:
        backend.operation(OPERATIONS[0], Inputs(2, backend.convert, {}), False)
        backend.net(TINY.mlp)
    assert asked == [False, False, True, True] and there[-1].name == TF32


def test_every_library_takes_the_same_step(there):
    net, losses = nets.Net((8, 6, 4, 3), 16), {}
    for backend in there:
        backend.begin()
        step = backend.net(net)
        losses[backend.name] = [float(numbers(step())[0]) for _ in range(4)]
    first = losses[there[0].name]
    assert first[3] < first[0]
    for name, found in losses.items():
        rtol = 1e-2 if name == TF32 else 1e-5
        np.testing.assert_allclose(found, first, rtol=rtol, err_msg=str(losses))


def test_parameters_and_operations_of_a_net_are_counted():
    largest = nets.BY_PARAMETERS[-1]
    assert (largest.name, largest.parameters) == ("400-256-64-10", 119754)
    assert nets.Net((3, 2), 10).flops == 2 * (2 * 10 * 3 * 2)  # forward, and of the weights


class FakeClock:
    """Calls take so many seconds; counts them."""

    def __init__(self, seconds):
        self.seconds, self.counts = seconds, []

    def __call__(self, count):
        self.counts.append(count)
        return count * self.seconds


def test_a_short_call_is_timed_many_times_a_sample():
    clock = FakeClock(1e-6)
    found = timing.timed(clock, 0.05)
    assert found.us == pytest.approx((1, 1, 1)) and 2000 <= found.calls <= 2001
    assert found.samples >= timing.MOST - 1 and sum(clock.counts) < 60000


def test_a_call_over_the_budget_is_timed_thrice():
    clock = FakeClock(0.2)
    assert timing.timed(clock, 0.05).samples == 3
    assert clock.counts == [1, 1, 1, 1]


def test_calls_that_compile_and_record_are_not_in_the_time():
    quick = FakeClock(1e-4)

    def clock(count):
        return 1.2 if len(quick.counts) < 2 and quick(count) else quick(count)

    found = timing.timed(clock, 0.05)
    assert found.us == pytest.approx((100, 100, 100)) and found.samples == timing.MOST
    quick.counts, quick.seconds = [], 0.06
    found = timing.timed(clock, 0.05)
    assert found.us == pytest.approx((60e3, 60e3, 60e3)) and found.samples == 3


def test_what_would_take_too_long_is_left_out_with_words():
    run = measuring.Measuring(replace(TINY, most=0.5), lambda what, share: None)
    product, last = OPERATIONS[0], {}
    there = backends.found()[0][1]
    last["one CPU core", "matmul", False] = (4, 0.4e6)
    run._operation(there, product, Inputs(8, there.convert, {}), False, last)
    assert [p["skipped"] for p in run.points] == ["a call would take about 0.8 s"]
    run.plan = replace(TINY, total=0.0)
    run._begin("ops")
    run._operation(there, product, Inputs(4, there.convert, {}), False, last)
    assert run.points[1]["skipped"] == "no time left of 0 s; hint: --seconds"


def test_no_part_takes_the_time_of_those_that_follow_it(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(measuring.time, "monotonic", lambda: now[0])
    run = measuring.Measuring(replace(TINY, total=100.0), lambda what, share: None, began=0.0)
    ends = []
    for part, takes in (("nets", 1000.0), ("blocks", 1.0), ("ops", 0.0)):
        now[0] = max(20.0, min(now[0], run.until))  # kernels took 20 s to compile
        run._begin(part)
        ends.append(run.until)
        now[0] += takes
    assert ends == [52.0, pytest.approx(61.6), 100.0]


def test_the_command_measures_all_parts(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(measuring, "QUICK", TINY)
    target = tmp_path / "made.json"
    assert main.main(["bench", "--quick", "--json", str(target)]) == main.OK
    assert capsys.readouterr().out == f"wrote {target}\n"
    result = json.loads(target.read_text())
    assert {p["what"] for p in result["points"]} == {"net", "blocks", "operation"}
    assert [p["skipped"] for p in result["points"] if "skipped" in p] == []
    for point in result["points"]:
        low, middle, high = point["us"]
        assert 0 < low <= middle <= high
    assert {p["threads"] for p in result["points"] if p["what"] == "blocks"} == {
        32, 64, 128, 256, 512, 1024}  # fmt: skip
    assert result["machine"]["backend"] == "emulated" and result["roofs"][0]["where"] == "CPU"


def test_measuring_needs_numpy_alone():
    """Of the machine with the GPU: no network, and no package of the grader."""
    code = """if True:
        import sys
        from grader.bench import __main__, measuring, classic
        unwanted = {"rich", "msgspec", "jinja2", "vl_convert", "tomli", "sklearn"}
        surplus = unwanted & sys.modules.keys()
        assert not surplus, surplus"""
    subprocess.run([sys.executable, "-c", code], cwd=KIT, check=True)


def test_the_peak_of_a_gpu_is_that_of_its_lanes():
    h100 = {"clock_khz": 1_980_000, "multiprocessors": 132, "compute_capability": "9.0"}
    a100 = {"clock_khz": 1_410_000, "multiprocessors": 108, "compute_capability": "8.0"}
    assert machine.float32_peak(h100) == pytest.approx(66.9e12, rel=1e-3)
    assert machine.float32_peak(a100) == pytest.approx(19.5e12, rel=1e-3)
    assert machine.float32_peak({}) is None


def test_the_parts_have_the_names_that_the_help_gives():
    assert all(part in command.EXAMPLES for part in (*command.PARTS, command.HANDOUT))
