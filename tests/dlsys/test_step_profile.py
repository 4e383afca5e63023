"""step.profile: what it measures, what it leaves alone, and the forms that it has."""

import contextlib
import ctypes
import itertools
import json
import re
import sys
import types
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from test_step import CONTEXTS, EVERYWHERE, training

import dlsys
from dlsys import ndarray, ops
from dlsys._base import DeviceError
from dlsys.backend.streams import needed
from dlsys.step import measuring, runs
from dlsys.step.profile import Kernel, Profile

ON_DEVICES = pytest.mark.parametrize("ctx", [CONTEXTS["cpu"], CONTEXTS["gpu"]], ids=["cpu", "gpu"])


def branches(ctx):
    """A step whose branches need not wait for one another."""
    x, w = ops.variable("x"), dlsys.parameter("w", np.linspace(-1, 1, 60 * 60).reshape(60, 60))
    ways = [ops.sum(x @ (w * scale)) for scale in (1.5, 2.5, 3.5)]
    return dlsys.compile(ways, {w: w * 0.5}, ctx), {x: np.ones((60, 60))}


def made():
    """A profile of three kernels on two streams, with known figures."""
    streams = (0, 0, 1)
    times = [np.array([1.0, 2.0, 3.0]), np.array([5.0, 6.0, 100.0]), np.array([1.0, 2.0, 2.0])]
    spans = [(0.0, 2.0), (2.5, 8.5), (3.0, 5.0)]
    names = [("product", ("(x@w)",)), ("fused", ("u", "<v>&")), ("reduce sum", ("s",))]
    kernels = [
        Kernel(*name, stream, 4000, 400, each, *span)
        for name, stream, each, span in zip(names, streams, times, spans, strict=True)
    ]
    return Profile("GPU", kernels, [9.0, 8.5, 104.0])


def check_lanes(profile):
    """In a stream nothing begins before what stands before it has ended."""
    for stream in {kernel.stream for kernel in profile.kernels}:
        lane = [kernel for kernel in profile.kernels if kernel.stream == stream]
        for kernel, after in itertools.pairwise(lane):
            assert 0 <= kernel.begin <= kernel.end <= after.begin


@EVERYWHERE
def test_a_profile_changes_no_parameter_and_uses_up_no_draw(ctx):
    step, feeds = training(ctx)
    twin, feeds_of_twin = training(ctx)
    for each, fed in ((step, feeds), (twin, feeds_of_twin)):
        each(fed)
    before = {name: step.get(name).tobytes() for name in step.state}
    step.profile(feeds, runs=2)
    assert {name: step.get(name).tobytes() for name in step.state} == before
    for _ in range(2):
        np.testing.assert_array_equal(*(each(fed, as_numpy=True)[0] for each, fed in
                                        ((step, feeds), (twin, feeds_of_twin))))  # fmt: skip
    assert all(np.array_equal(step.get(name), twin.get(name)) for name in step.state)


@EVERYWHERE
def test_every_kernel_is_timed_in_every_run(ctx):
    step, feeds = training(ctx)
    profile = step.profile(feeds, runs=3)
    assert len(profile.wholes) == 3
    for kernel in profile.kernels:
        assert len(kernel.times) == 3 and (kernel.times >= 0).all() and kernel.nodes
        assert kernel.quartiles[0] <= kernel.median <= kernel.quartiles[1]
    assert sum(map(profile.share, profile.kernels)) == pytest.approx(1)
    for stream in {kernel.stream for kernel in profile.kernels}:  # they run side by side
        times = [kernel.times for kernel in profile.kernels if kernel.stream == stream]
        assert (profile.wholes >= np.sum(times, axis=0) * 0.999).all()
    check_lanes(profile)


@ON_DEVICES
def test_kernels_are_the_instructions_of_the_program_and_name_their_nodes(ctx):
    step, feeds = training(ctx)
    profile = step.profile(feeds, runs=1)
    instructions = step.run_of().program.instructions
    assert len(profile.kernels) == len(instructions) >= 5
    for kernel, each in zip(profile.kernels, instructions, strict=True):
        assert each.node.name in kernel.nodes
    assert any(len(kernel.nodes) > 1 for kernel in profile.kernels)
    names = {kernel.name for kernel in profile.kernels}
    assert names & {"product", "gemm"} and names & {"fused", "fused rows"}


def test_on_numpy_the_kernels_are_the_nodes():
    step, feeds = training(None)
    profile = step.profile(feeds, runs=1)
    computed = [node.name for node in step.run_of().graph.nodes if not node.op.is_fed]
    assert [kernel.nodes for kernel in profile.kernels] == [(name,) for name in computed]
    product = next(kernel for kernel in profile.kernels if kernel.name == "matmul")
    assert (product.read, product.written) == (8 * (12 * 7 + 7 * 9), 8 * 12 * 9)


@ON_DEVICES
def test_bytes_count_what_is_repeated_once_and_of_a_table_what_is_chosen(ctx):
    x, row, table = ops.variable("x"), ops.variable("row"), ops.variable("table")
    chosen = ops.embedding(table, ops.variable("at"))
    fed = {node.name: node for node in (x, row, table, chosen.inputs[1])}
    feeds = {
        fed["x"]: np.ones((30, 20)), fed["row"]: np.ones(20), fed["table"]: np.ones((1000, 5)),
        fed["at"]: np.arange(7),
    }  # fmt: skip
    step = dlsys.compile([ops.tanh(x + row) * x, chosen], ctx=ctx)
    kernels = {kernel.name: kernel for kernel in step.profile(feeds, runs=1).kernels}
    assert kernels["fused"].read == 4 * (30 * 20 + 20)
    assert kernels["fused"].written == 4 * 30 * 20
    assert kernels["gather"].read == 4 * 7 * 5 + 8 * 7
    assert kernels["gather"].written == 4 * 7 * 5


def test_on_streams_of_their_own_nothing_begins_before_what_it_waits_for(monkeypatch):
    monkeypatch.setattr(runs, "_no_capture", lambda on_gpu: "", raising=False)
    step, feeds = branches(CONTEXTS["gpu"])
    profile = step.profile(feeds, runs=2)
    program = step.run_of().program
    waits = needed(program.instructions, program._memory_of)
    assert len({kernel.stream for kernel in profile.kernels}) == 3 and any(waits)
    for kernel, others in zip(profile.kernels, waits, strict=True):
        assert all(profile.kernels[other].end <= kernel.begin for other in others)
    check_lanes(profile)
    assert profile.svg().count("stream ") >= 3
    names = [e["args"]["name"] for e in profile.trace()["traceEvents"] if e["ph"] == "M"]
    assert names[1:] == ["stream 0", "stream 1", "stream 2"]


def test_on_one_stream_each_kernel_runs_alone():
    step, feeds = branches(CONTEXTS["gpu"])
    profile = step.profile(feeds, runs=1, streams=1)
    assert {kernel.stream for kernel in profile.kernels} == {0}
    pairs = zip(profile.kernels, profile.kernels[1:], strict=False)
    assert all(one.end <= two.begin for one, two in pairs)


def test_a_recorded_step_stays_recorded_and_goes_on_to_the_same_bits(monkeypatch):
    monkeypatch.setattr(runs, "_no_capture", lambda on_gpu: "", raising=False)
    found = []
    for is_profiled in (False, True):
        step, feeds = branches(CONTEXTS["gpu"])
        ((x, values),) = feeds.items()
        feeds = {x: ndarray.array(values, CONTEXTS["gpu"])}
        found.append([])
        for _ in range(4):
            found[-1] += [value.tobytes() for value in step(feeds, as_numpy=True)]
            recorded = list(step.run_of().program._captured.values())
            if is_profiled:
                step.profile(feeds, runs=1)
        assert recorded and list(step.run_of().program._captured.values()) == recorded
    assert found[0] == found[1] and len(set(found[0])) == 12


@EVERYWHERE
def test_an_index_out_of_range_is_told_and_parameters_are_as_before(ctx):
    table = dlsys.parameter("table", np.ones((5, 2)))
    at = ops.variable("at")
    step = dlsys.compile(ops.sum(ops.embedding(table, at)), {table: table * 2}, ctx)
    with pytest.raises(IndexError):
        step.profile({at: np.array([1, 9])}, runs=1)
    np.testing.assert_array_equal(step.get(table), np.ones((5, 2)))
    step.profile({at: np.array([1, 2])}, runs=2)
    np.testing.assert_array_equal(step.get(table), np.ones((5, 2)))


@ON_DEVICES
def test_a_launch_that_fails_is_named_and_parameters_are_as_before(ctx):
    step, feeds = branches(ctx)
    step.profile(feeds, runs=1)
    before, program = step.get("w"), step.run_of().program
    place, address = len(program.instructions) - 2, ctypes.c_void_p
    fails = ctypes.CFUNCTYPE(ctypes.c_int, address, address, address, address)(lambda *given: 1)
    program._steps[place].kernel = ctypes.cast(fails, address)
    name = re.escape(program.instructions[place].node.name)
    with pytest.raises(DeviceError, match=f"the launch of {name} failed"):
        step.profile(feeds, runs=1)
    np.testing.assert_array_equal(step.get("w"), before)


@EVERYWHERE
def test_a_step_without_kernels_has_an_empty_profile(ctx):
    x = ops.variable("x")
    profile = dlsys.compile([x], ctx=ctx).profile({x: np.ones(3)}, runs=2)
    assert profile.kernels == [] and profile.total == 0
    assert "0 kernels" in str(profile)
    ElementTree.fromstring(profile.svg())
    assert profile.trace()["traceEvents"][0]["name"] == "process_name"


def test_fewer_runs_than_one_are_refused():
    step, feeds = training(None)
    for said in ({"runs": 0}, {"runs": 1.5}, {"streams": 0}, {"streams": "a"}):
        with pytest.raises(ValueError, match=r"^(0|1\.5|a) (runs|streams); hint: 1 or more"):
            step.profile(feeds, **said)


def test_the_table_has_the_longest_first_with_their_figures():
    lines = str(made()).splitlines()
    assert lines[:2] == [
        "GPU: 3 kernels on 2 streams", "median of 3 runs: 9 us; the kernels alone: 10 us",
    ]  # fmt: skip
    words = ("# stream median us quartiles us share read written kernel nodes",
             "1 0 6.0 5.5 53.0 60.0% 4 kB 400 B fused <v>& (+1)")  # fmt: skip
    assert [" ".join(line.split()) for line in lines[3:5]] == list(words)
    assert [line.split()[0] for line in lines[4:7]] == ["1", "0", "2"]
    assert lines[7:] == ["stream 0: 2 kernels, 8.0 us", "stream 1: 1 kernel, 2.0 us"]
    assert made().table(most=1).splitlines()[5] == "and 2 more: 4.0 us"


def test_the_picture_has_a_lane_for_each_stream_and_a_hint_for_each_kernel():
    profile = made()
    text = profile.svg()
    assert profile._repr_svg_() == text
    root = ElementTree.fromstring(text)
    names = [each.tag.partition("}")[2] for each in root.iter()]
    assert "script" not in names and "href" not in text and "url(" not in text
    said = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert said.count("stream 0") == said.count("stream 1") == 1
    hints = [each.text for each in root.iter("{http://www.w3.org/2000/svg}title")]
    assert [hint.split(",")[0] for hint in hints] == ["#0 product", "#1 fused", "#2 reduce sum"]
    assert "u, <v>&" in hints[1] and "reads 4 kB, writes 400 B" in hints[1]
    bars = [
        [float(each.get(key).rstrip("%")) for key in ("x", "width")]
        for each in root.iter("{http://www.w3.org/2000/svg}svg")
        if each.get("x", "").endswith("%")
    ]
    wanted = [[0, 2], [2.5, 6], [3, 2]]  # begin, duration
    np.testing.assert_allclose(bars, np.array(wanted) * 100 / 8.5, atol=1e-3)


@EVERYWHERE
def test_the_file_is_in_the_trace_event_format(ctx, tmp_path):
    step, feeds = training(ctx)
    profile = step.profile(feeds, runs=2)
    profile.save(tmp_path / "step.json")
    trace = json.loads((tmp_path / "step.json").read_text())
    assert set(trace) == {"traceEvents", "displayTimeUnit"}
    events = {"M": [], "X": []}
    for event in trace["traceEvents"]:
        assert isinstance(event["pid"], int) and isinstance(event["tid"], int)
        events[event["ph"]].append(event)
    named = {event["tid"] for event in events["M"] if event["name"] == "thread_name"}
    assert all(isinstance(event["args"]["name"], str) for event in events["M"])
    assert [event["args"]["nodes"] for event in events["X"]] == [
        list(kernel.nodes) for kernel in profile.kernels
    ]
    for event, kernel in zip(events["X"], profile.kernels, strict=True):
        assert event["dur"] >= 0 and event["tid"] in named
        assert event["ts"] == pytest.approx(kernel.begin, abs=1e-3)
        assert event["ts"] + event["dur"] == pytest.approx(kernel.end, abs=1e-3)


def test_in_the_file_no_two_kernels_of_a_stream_overlap_by_rounding():
    ends = np.cumsum(np.random.default_rng(3).uniform(0.0004, 0.003, 60))
    begins = [0.0, *ends[:-1].tolist()]
    kernels = [
        Kernel("fused", (f"n{i}",), 0, 0, 0, np.ones(1), *span)
        for i, span in enumerate(zip(begins, ends.tolist(), strict=True))
    ]
    events = Profile("GPU", kernels, [1.0]).trace()["traceEvents"][2:]
    in_nanoseconds = [(event["ts"] * 1000, event["dur"] * 1000) for event in events]
    np.testing.assert_allclose(in_nanoseconds, np.rint(in_nanoseconds), atol=1e-9)
    for (begin, length), (after, _) in itertools.pairwise(np.rint(in_nanoseconds)):
        assert begin + length <= after


@EVERYWHERE
def test_nvtx_ranges_carry_the_names_of_nodes(ctx, monkeypatch):
    """Around each launch, in a range of the step."""
    told = []

    @contextlib.contextmanager
    def annotate(message, domain):
        told.append((message, domain))
        yield
        told.append("end")

    monkeypatch.setitem(sys.modules, "nvtx", types.SimpleNamespace(annotate=annotate))
    step, feeds = training(ctx)
    before = {name: step.get(name).tobytes() for name in step.state}
    profile = step.profile(feeds, runs=2, nvtx=True)
    each = [("step", "dlsys")]
    for kernel in profile.kernels:
        each += [(", ".join(kernel.nodes), "dlsys"), "end"]
    assert told == [*each, "end"] * 2
    assert {name: step.get(name).tobytes() for name in before} == before
    told.clear()
    step.profile(feeds, runs=1)
    assert told == []


def test_nvtx_is_that_of_nvidia():
    pytest.importorskip("nvtx")
    with measuring.nvtx_ranges()("((x@w)+b)"):
        pass


def test_without_the_package_nvtx_there_is_a_hint(monkeypatch):
    monkeypatch.setitem(sys.modules, "nvtx", None)
    step, feeds = training(None)
    with pytest.raises(ImportError, match="hint: python3 -m pip install nvtx"):
        step.profile(feeds, nvtx=True)


def test_a_profile_of_a_device_says_where_and_how():
    step, feeds = training(CONTEXTS["cpu"])
    assert re.match(r"CPU, \d+ threads?: \d+ kernels on 1 stream\n", str(step.profile(feeds, 1)))
    step, feeds = training(CONTEXTS["gpu"])
    where = "emulated GPU" if ndarray.is_emulated() else "GPU"
    assert str(step.profile(feeds, 1)).startswith(where + ": ")
