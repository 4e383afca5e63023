"""What an executor does on the GPU is proved by a process that holds no code of the student's."""

import os
import re
import shutil
import signal
import time
from pathlib import Path

import numpy as np
import pytest

import catalogue
import many_seeds
from edits import edit
from grader.building import tree as build
from grader.building.tree import child_environment
from grader.checks.far_gpu import far_session
from grader.checks.far_gpu.far_device import KERNELS
from grader.checks.far_gpu.far_session import FarContext
from grader.checks.harness.compare import Failure
from grader.checks.harness.context import GpuWork
from grader.checks.harness.outcomes import Flag
from grader.checks.registry import CHECKS
from grader.course.rubric import load_rubric
from grader.grading.prebuilt import far_library, prebuilt, reference
from grader.grading.runner import Options, grade
from grader.report.model import ERROR, FAIL, PASS
from grader.report.wording import explain
from grader.student.remote import ChildDied, ChildTimeout, StudentError

pytestmark = pytest.mark.usefixtures("same_builds")

BOTH = ("memory_plan", "feed_shapes")
FD = "import os, struct\n_fd = int(os.environ.get('DLSYS_FAR_DEVICE', '-1'))\n"


@pytest.fixture(scope="module")
def built():
    with reference("emulated") as tree:
        yield tree


@pytest.fixture
def context(built, tmp_path):
    """A context over the reference, with an executor of one's own, or code behind the reference's;
    of one far device."""

    def make(check, autodiff=None, more="", seconds=60.0):
        tree = tmp_path / "tree"
        shutil.copytree(built, tree)
        module = tree / "python/dlsys/autodiff.py"
        module.write_text((autodiff or module).read_text() + more)
        return FarContext(
            tree=tree, rubric=load_rubric("default"), backend="emulated", seed="5eed", check=check,
            seconds=seconds, env=child_environment("emulated"),
            far=far_library(prebuilt("emulated")),
        )  # fmt: skip

    return make


def raised(context, kind):
    """The error that a check raises; no process outlives it."""
    before = catalogue.children()
    with pytest.raises(kind) as caught:
        CHECKS[context.check](context)
    assert catalogue.children() - before == set()
    return str(caught.value)


# --- honest work ----------------------------------------------------------------------------------


@pytest.mark.parametrize("check", BOTH)
@pytest.mark.parametrize("name", many_seeds.RIGHT)
def test_right_work_is_proved(name, check, context):
    made = context(check, many_seeds.RIGHT[name][1] / "python/dlsys/autodiff.py")
    CHECKS[check](made)
    assert made.facts == {}


HABITS = {
    "prints addresses": """
_run = Executor.run
def run(self, *args, **named):
    results = _run(self, *args, **named)
    for array in (self.node_to_arr_map or {}).values():
        print(array.handle.contents.data, array.shape, array.ctx, array)
    return results
Executor.run = run
""",
    "keeps what it allocates in one arena": """
_empty, _arena, _used = ndarray.empty, [], [0]
def empty(shape, ctx):
    if not _arena:
        _arena.append(_empty((1 << 20,), ctx))
    array = ndarray.view(_arena[0], shape)
    array.handle.contents.data += 4 * _used[0]
    _used[0] += ndarray.size_of(shape) + 64
    return array
class _Module:
    def __getattr__(self, name):
        return empty if name == "empty" else getattr(_real, name)
_real, ndarray = ndarray, _Module()
""",
    "zeroes its memory": """
_plan = Executor.memory_plan
def memory_plan(self, shapes):
    _plan(self, shapes)
    for array in self.node_to_arr_map.values():
        array[:] = np.zeros(array.shape)
Executor.memory_plan = memory_plan
""",
    "launches by hand": """
from ._base import _LIB, check_call
gpu_op.relu = lambda a, b: check_call(_LIB.DLGpuRelu(a.handle, b.handle))
""",
    "copies its results to the host and back": """
_read, _run = ndarray.NDArray.asnumpy, Executor.run
def run(self, feeds, convert_to_numpy_ret_vals=False):
    results = _run(self, feeds)
    if self.ctx is None:
        return results
    if convert_to_numpy_ret_vals:
        return [np.array(_read(r), np.float64) for r in results]
    for array in results:
        array[:] = _read(array)
    return results
Executor.run = run
""",
    "lets its arrays outlive the executor": """
_kept, _run = [], Executor.run
def run(self, *args, **named):
    _kept.append(self.node_to_arr_map)
    return _run(self, *args, **named)
Executor.run = run
""",
}


@pytest.mark.parametrize("check", BOTH)
@pytest.mark.parametrize("habit", HABITS)
def test_a_habit_of_honest_work_does_no_harm(habit, check, context):
    made = context(check, more=HABITS[habit])
    CHECKS[check](made)
    assert made.facts == {}


ALLOCATES = "self.node_to_arr_map[node] = ndarray.empty(shapes[node], self.ctx)"
#: Name -> edits of the reference's executor: (what stands there once, what replaces it).
PLANS = {
    "copies whole buffers, with what nobody wrote behind the values": [
        ("        buffers, pool = {}, []\n", "        buffers, pool, self.pairs = {}, [], {}\n"),
        (f"                {ALLOCATES}\n", """\
                room = (ndarray.size_of(shapes[node]) + 1000,)
                self.pairs[node] = [ndarray.empty(room, self.ctx) for _ in range(2)]
                self.node_to_arr_map[node] = ndarray.view(self.pairs[node][0], shapes[node])
"""),
        ("    def infer_shape(self, feed_shapes):\n", """\
    def _run_gpu(self, values):
        super()._run_gpu(values)
        for node, (computed, copied) in self.pairs.items():
            computed.copyto(copied)
            values[node] = ndarray.view(copied, values[node].shape)
        return [values[node] for node in self.eval_node_list]

    def infer_shape(self, feed_shapes):
"""),
    ],
    "takes half a GiB": [
        ("find_topo_sort(eval_node_list), ctx)\n", """\
find_topo_sort(eval_node_list), ctx)
        if ndarray.is_gpu_ctx(ctx):
            self.arena = ndarray.empty((1 << 27,), ctx)
"""),
    ],
}  # fmt: skip


@pytest.mark.parametrize("plan", PLANS)
def test_an_executor_may_use_memory_in_its_own_way(plan, context, tmp_path):
    source = build.KIT / "solution/python/dlsys/autodiff.py"
    module = edit(Path(shutil.copy(source, tmp_path)), *PLANS[plan])
    made = context("feed_shapes", module)
    CHECKS["feed_shapes"](made)
    assert made.facts == {}


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("gpu_op._LIB.DLGpuSoftmaxV1", "it needs its own library.*DLGpuSoftmaxV1"),
        (
            "from ._base import DeviceError\nif 'DLSYS_FAR_DEVICE' in os.environ:\n"
            "    raise DeviceError('no such shapes')",
            "refuses what its own may take.*no such shapes",
        ),
    ],
)
def test_work_that_needs_its_own_library_waits_for_a_person(more, words, context):
    with pytest.raises(Flag, match=f"a person must look.*{words}"):
        CHECKS["feed_shapes"](context("feed_shapes", more=f"import os\n{more}\n"))


#: Results on the CPU; and kernels of its own behind an error that was caught.
BESIDE_CTX = ("ndarray.empty(shapes[node], self.ctx)", "ndarray.empty(shapes[node])")
TRIES = """
def _try():
    a = ndarray.array(np.ones(3, np.float32))
    try:
        gpu_op.relu(a, a)
    except Exception:
        pass
_try()
"""


def test_a_kernel_that_is_given_an_array_of_the_cpu_is_a_failure(context, tmp_path):
    source = build.KIT / "solution/python/dlsys/autodiff.py"
    module = edit(Path(shutil.copy(source, tmp_path)), BESIDE_CTX)
    made = context("feed_shapes", module)
    with pytest.raises(StudentError, match="given an array on the CPU: CUDA error 700") as found:
        CHECKS["feed_shapes"](made)
    said = explain(found.value)
    assert "self.ctx" in said["hint"] and any("autodiff.py" in line for line in said["details"])
    # Launchers of its own may look where an array lies: then it is for a person.
    (made.tree / "src").mkdir(exist_ok=True)
    (made.tree / "src/gpu_op.cu").write_text("if (a->ctx.device_type == kCPU) stage(a);\n")
    with pytest.raises(Flag, match=r"a person must look.*given an array on the CPU"):
        CHECKS["feed_shapes"](made)


def test_an_array_of_the_cpu_that_was_refused_before_is_not_what_failed(context):
    with pytest.raises(Flag, match=r"a person must look.*it needs its own library"):
        CHECKS["feed_shapes"](context("feed_shapes", more=TRIES + "gpu_op._LIB.DLGpuSoftmaxV1\n"))


def test_an_array_of_the_cpu_that_was_refused_before_costs_nothing(context):
    CHECKS["feed_shapes"](context("feed_shapes", more=TRIES))


# --- hostile work: see also tests/submissions/ ----------------------------------------------------

HOSTILE = {
    "garbage": ("os.write(_fd, b'garbage' * 100)", Failure, "no call is b'g'"),
    "a giant": ("os.write(_fd, struct.pack('<cI', b'U', 0xffffffff))", Failure, "4294967295 bytes"),
    "half a call": ("os.write(_fd, b'L')", ChildTimeout, "not finished within 4 s"),
    "an unknown kernel": (
        "os.write(_fd, struct.pack('<cI', b'L', 5) + b'exec\\0'); os.read(_fd, 9)",
        Failure, "no kernel 'exec'",
    ),
    "nothing more": ("os.close(_fd)", Failure, "the connection was closed"),
    "without reading": (
        "while True: os.write(_fd, struct.pack('<cIQQ', b'D', 16, 1, 4) * 1000)",
        ChildTimeout, "not finished within 4 s",
    ),
    "a flood": (
        "while True: os.write(_fd, struct.pack('<cIQ', b'F', 8, 1)); os.read(_fd, 1 << 16)",
        ChildTimeout, "not finished within 4 s",
    ),
    "its death": ("os._exit(0)", ChildDied, "exit code 0"),
}  # fmt: skip


@pytest.mark.parametrize("what", HOSTILE)
def test_whatever_the_child_sends_is_its_own_failure(what, context):
    code, kind, words = HOSTILE[what]
    started = time.monotonic()
    assert words in raised(context("feed_shapes", more=f"{FD}{code}\n", seconds=4), kind)
    assert time.monotonic() - started < 20


def test_a_copy_of_the_child_that_holds_the_socket_does_not_outlive_the_check(context):
    before = catalogue.children()
    more = f"{FD}if os.fork() == 0:\n    import time\n    time.sleep(600)\n"
    CHECKS["feed_shapes"](context("feed_shapes", more=more))
    assert catalogue.children() - before == set()


def history(**facts):
    """What the device tells of a result of two nodes that was made of one array."""
    made = {"steps": 3, "launches": 2, "constants": 1, "places": 1, "pieces": 0, "unwritten": False}
    return {**made, "uploads": [far_session._hash(np.arange(4))], **facts}


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({}, ""),
        ({"uploads": ["0" * 64]}, "never fed"),
        ({"uploads": []}, "without all that was fed"),
        ({"constants": 11}, "11 numbers"),
        ({"pieces": 33}, "33 pieces"),
        ({"steps": 17}, "17 steps, where the graph has 2 nodes"),
        ({"launches": 1}, "1 launches"),
        ({"unwritten": True}, "nobody wrote"),
    ],
)
def test_a_history_of_other_work_is_refused(facts, words):
    session = far_session.FarSession.__new__(far_session.FarSession)
    session._fed = set()
    session.feed(np.arange(4))
    reason = session._not_made(history(**facts), GpuWork("x", [np.arange(4)], nodes=2))
    assert (words in reason) if words else (reason == "")


# --- the device's own failures --------------------------------------------------------------------


def ended(number, serve=far_session.FarSession.serve):
    """Another FarSession.serve: a signal reaches the device as soon as it serves."""

    def serves(session, fd):
        serve(session, fd)
        os.kill(session._process._pipe.child.pid, number)

    return serves


def test_a_device_that_dies_is_the_machines_fault(context, monkeypatch):
    monkeypatch.setattr(far_session.FarSession, "serve", ended(signal.SIGKILL))
    assert "the far device has failed" in raised(context("memory_plan"), far_session.DeviceLost)


def test_a_device_that_hangs_is_the_machines_fault(context, monkeypatch):
    monkeypatch.setattr(far_session, "_PATIENCE", 2.0)
    monkeypatch.setattr(far_session.FarSession, "serve", ended(signal.SIGSTOP))
    assert "not finished" in raised(context("memory_plan", seconds=3), far_session.DeviceLost)


def test_a_device_that_dies_makes_an_error_in_the_report(monkeypatch):
    monkeypatch.setattr(far_session.FarSession, "serve", ended(signal.SIGKILL))
    options = Options(load_rubric("default"), "emulated", only=("feed_shapes",))
    report = grade(build.KIT / "solution", options)
    result = next(r for r in report.results if r.check == "feed_shapes")
    assert result.status == ERROR and "DeviceLost" in result.message
    assert {r.status for r in report.results if r.check != "feed_shapes"} == {PASS}


@pytest.mark.parametrize(("deaths", "status"), [(1, PASS), (2, FAIL)])
def test_a_device_that_dies_of_one_submission_alone_is_its_failure(deaths, status, monkeypatch):
    """At the second time: the first may be chance. The reference is asked then."""
    serve, kill, begun = far_session.FarSession.serve, ended(signal.SIGKILL), []

    def dies(session, fd):
        begun.append(fd)
        (kill if len(begun) <= deaths else serve)(session, fd)

    monkeypatch.setattr(far_session.FarSession, "serve", dies)
    options = Options(load_rubric("default"), "emulated", only=("feed_shapes",))
    report = grade(build.KIT / "solution", options)
    result = next(r for r in report.results if r.check == "feed_shapes")
    assert result.status == status and len(begun) == deaths + 1


def test_a_library_that_does_not_compile_with_the_sources_is_none(tmp_path):
    shutil.copytree(prebuilt("emulated"), tmp_path / "built", ignore=lambda *_: {"emulator"})
    (tmp_path / "built/src/c_runtime_api.h").write_text("#error not the kit's\n")
    for made in (tmp_path / "built/build/obj").glob("far-*"):
        made.unlink()
    assert far_library(tmp_path / "built") is None


def test_every_kernel_of_the_header_is_there():
    header = (build.KIT / "solution/src/c_runtime_api.h").read_text()
    names = re.findall(r"int (DLGpu\w+)\(", header)
    names = [name for name in names if not name.startswith("DLGpuFast")]  # no executor's
    assert sorted(names) == sorted(KERNELS)
    library = (Path(build.FAR) / "far_device.cc").read_text()
    assert sorted(re.findall(r'Launch\("(\w+)"', library)) == sorted(KERNELS)


def _results(session):
    """What every kernel makes of the same numbers."""
    rng = np.random.default_rng(7)
    a, b, square = (
        rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((5, 4), (5, 4), (4, 4))
    )
    ops, made = session.gpu_op, []

    def out(*shape):
        made.append(session.nd.empty(shape, ctx=session.nd.gpu(0)))
        return made[-1]

    x, y, z = (session.upload(values) for values in (a, b, square))
    ops.array_set(out(3, 3), 2.5)
    ops.broadcast_to(x, out(3, 5, 4))
    ops.reduce_sum_axis_zero(x, out(4))
    ops.matrix_elementwise_add(x, y, out(5, 4))
    ops.matrix_elementwise_add_by_const(x, 0.3, out(5, 4))
    ops.matrix_elementwise_multiply(x, y, out(5, 4))
    ops.matrix_elementwise_multiply_by_const(x, 0.3, out(5, 4))
    ops.matrix_multiply(x, False, z, True, out(5, 4))
    ops.matrix_multiply(x, True, y, False, out(4, 4))
    ops.relu(x, out(5, 4))
    ops.relu_gradient(x, y, out(5, 4))
    ops.softmax(x, out(5, 4))
    ops.softmax_cross_entropy(x, y, out(1))
    with pytest.raises(StudentError, match="DeviceError"):
        ops.relu(x, z)
        session.remote.flush()
    return session.remote.fetch_all([array.asnumpy() for array in made])


def test_its_kernels_are_those_of_the_reference(context):
    made = context("feed_shapes")
    found = []
    made.on_device(lambda session: found.append(_results(session)))
    assert made.facts == {} and [len(arrays) for arrays in found] == [13, 13]
    for got, expected in zip(*found, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
