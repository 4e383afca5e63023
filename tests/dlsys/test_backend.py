"""The ops of `dlsys.ops` on every back end beside numpy: value, gradients and gradients of these.

Ops that draw random numbers are in test_backend_runs.py; of classic ones the value alone is here.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from test_ops import OPS, SAMPLES, applied, differentiated

from dlsys import autodiff, ndarray, ops
from dlsys.backend import cpu, gpu, kernels
from dlsys.backend.lowering import Lowering
from dlsys.gradcheck import evaluate

DEVICES = {"cpu": (ndarray.cpu(0), cpu), "gpu": (ndarray.gpu(0), gpu)}
#: Bounds of the error, beside the largest value; a GPU and a CPU have other roundings of exp.
TOLERANCES = {"float32": 2e-5, "float64": 1e-11}
#: Numbers of 64 bits tell a wrong formula from a rounding.
KINDS = [(device, dtype) for device in DEVICES for dtype in TOLERANCES]


def graph_of(op, sample):
    """Nodes of the value, the gradients and their gradients, and what they are fed."""
    node, feeds = applied(op, sample)
    fixed = {*op.labels, *getattr(op, "indices", ())}
    random = np.random.default_rng(11)

    def weights_like(node):
        weights = autodiff.Variable(name="weights")
        feeds[weights] = random.uniform(0.5, 1.5, evaluate([node], feeds)[0].shape)
        return weights

    grads = differentiated(op, node, weights_like(node))
    nodes = [node, *grads]
    for number, grad in enumerate(grads):
        if number in fixed:
            continue
        total = ops.sum(grad * weights_like(grad))
        found = set(autodiff.find_topo_sort([total]))
        wrt = [fed for i, fed in enumerate(feeds) if i not in fixed and fed in found]
        nodes += autodiff.gradients(total, wrt)
    return nodes, feeds


def graphs():
    """(id, op, nodes, feeds) of every sample of every op that has a second gradient."""
    for sample in SAMPLES:
        op, arguments = sample.values
        is_new = type(op).__module__.startswith("dlsys.ops")
        if is_new and not op.draws:
            yield sample.id, op, *graph_of(op, arguments)


GRAPHS = list(graphs())
NAMES = [name for name, op in OPS.items() if any(op is each for _, each, *_ in GRAPHS)]
CLASSIC = [name for name, op in OPS.items() if type(op).__module__ == "dlsys.autodiff"]


def test_no_op_is_left_out():
    drawing = {name for name, op in OPS.items() if getattr(op, "draws", False)}
    assert {*NAMES, *CLASSIC} == OPS.keys() - drawing
    assert len(NAMES) > 60


@pytest.fixture(scope="module", params=KINDS, ids="-".join)
def compiled(request):
    """(device, dtype), with the kernels of all graphs that are to run compiled in one go."""
    device, dtype = request.param
    chosen = {
        item.callspec.params.get("name")
        for item in request.session.items
        if item.path == request.path and hasattr(item, "callspec")
    }
    running = [OPS[name] for name in chosen - {None}]
    keys = {}
    for _, op, nodes, feeds in GRAPHS:
        if not any(op is each for each in running):
            continue
        fed = {node: (values.shape, np.dtype(dtype)) for node, values in feeds.items()}
        lowering = Lowering(fed, np.dtype(dtype))
        for node in autodiff.find_topo_sort(nodes):
            if node not in feeds:
                lowering.lower(node)
        keys.update(dict.fromkeys(each.key for each in lowering.instructions))
    kernels.kernels(DEVICES[device][1], list(keys))
    return device, dtype


def on_device(values, device, dtype):
    return ndarray.array(values, DEVICES[device][0], np.dtype(dtype))


def assert_near(got, wanted, dtype):
    wanted = np.asarray(wanted)
    bound = TOLERANCES[dtype] * (1 + np.abs(wanted).max(initial=0))
    np.testing.assert_allclose(got, wanted, rtol=0, atol=bound)


@pytest.mark.parametrize("name", NAMES)
def test_a_back_end_computes_what_numpy_does(compiled, name):
    device, dtype = compiled
    for _, op, nodes, feeds in GRAPHS:
        if op is not OPS[name]:
            continue
        executor = autodiff.Executor(nodes, ctx=DEVICES[device][0])
        rounded = {node: values.astype(dtype) for node, values in feeds.items()}
        fed = {node: on_device(values, device, dtype) for node, values in rounded.items()}
        wanted = evaluate(nodes, {n: v.astype(np.float64) for n, v in rounded.items()})
        for _ in range(2):  # the second run finds the memory of the first
            for got, expected in zip(executor.run(fed, True), wanted, strict=True):
                assert got.shape == np.shape(expected)
                assert_near(got, expected, dtype)


@pytest.mark.parametrize("name", CLASSIC)
def test_the_classic_ops_run_on_every_core_too(name):
    op = OPS[name]
    for sample in op.samples:
        node, feeds = applied(op, sample)
        (got,) = autodiff.Executor([node], ctx=ndarray.cpu(0)).run(feeds, True)
        (wanted,) = evaluate([node], feeds)
        assert got.shape == np.shape(wanted)
        assert_near(got, wanted, "float32")


def test_a_product_and_a_shift_divide_all_numbers_below_two_to_the_31():
    kit, program = Path(__file__).resolve().parents[2], Path(__file__).with_name("division.cu")
    words = [sys.executable, kit / "emulator/emucc.py", f"-I{kit / 'solution/src/backend'}"]
    done = subprocess.run([*words, "--run", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, "0"), done.stderr
