"""Convolutions on a GPU without columns, and which method a shape gets."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from test_convolution import CPU, GPU, assert_as_numpy, nodes_of
from test_fusion import run

import dlsys
from dlsys import autodiff, dtypes, ndarray, ops, optim
from dlsys._base import DeviceError
from dlsys.backend import choosing, cudnn, gpu, implicit, kernels, measured, program
from dlsys.backend.gemm import with_tf32
from dlsys.backend.implicit import ImplicitConvolution
from dlsys.backend.kernels import CompileError
from dlsys.backend.windows import Windows
from dlsys.gradcheck import evaluate
from dlsys.step import parameter

FLOAT32 = dtypes.FLOAT32
#: 1 x 1 with groups: a batch of plain products.
POINTS = ((3, 4, 5, 3), (6, 2, 1, 1), {"groups": 2})


def random_case(seed):
    """Shapes of x and w, and attributes, of which some windows lie in the border alone."""
    random = np.random.default_rng(seed)

    def two(low, high):
        return tuple(int(v) for v in random.integers(low, high, 2))

    groups = int(random.integers(1, 4))
    kernel, dilation = two(1, 5), two(1, 3)
    least = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    size = tuple(int(n + random.integers(0, 9)) for n in least)
    channels, filters = groups * int(random.integers(1, 6)), groups * int(random.integers(1, 8))
    attributes = {"stride": two(1, 4), "padding": two(0, 4), "dilation": dilation}
    x = (int(random.integers(1, 5)), channels, *size)
    return x, (filters, channels // groups, *kernel), {**attributes, "groups": groups}


@pytest.mark.parametrize("method", ["implicit", "im2col", "direct"])
def test_random_convolutions_are_the_same_by_every_method(method):
    for seed in range(12):
        x, w, attributes = random_case(seed)
        nodes, feeds = nodes_of(x, w, {**attributes, "method": method})
        assert_as_numpy(nodes, feeds, GPU, "float32", 2e-5)


def test_loops_over_kernels_of_three_by_three_are_right_for_all_windows():
    """Their taps are unrolled; more windows than threads of a block, strides, groups, borders."""
    for x, w, attributes in (
        ((3, 4, 15, 17), (6, 2, 3, 3), {"padding": 1, "groups": 2}),
        ((2, 3, 20, 9), (2, 3, 3, 3), {"stride": (2, 3), "padding": (2, 0), "dilation": (1, 2)}),
        ((5, 8, 12, 12), (8, 1, 3, 3), {"groups": 8}),
        ((600, 1, 3, 3), (1, 1, 3, 3), {"padding": 4, "stride": 3}),
    ):
        nodes, feeds = nodes_of(x, w, {**attributes, "method": "direct"})
        assert_as_numpy(nodes, feeds, GPU, "float32", 2e-5)


def test_borders_of_any_width_are_right():
    """So wide that numpy can't lay them out, of which only the middle tap meets the image."""
    said = {"padding": 2**32, "dilation": 2**32, "method": "direct"}
    nodes, feeds = nodes_of((1, 1, 3, 3), (1, 1, 3, 3), said)
    rounded = {node: values.astype(np.float32) for node, values in feeds.items()}
    found, wanted = (run(nodes, rounded, ctx, (), FLOAT32)[0] for ctx in (GPU, CPU))
    for got, expected in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5)


def test_a_weight_that_is_infinite_counts_only_where_its_tap_is():
    (value, *_), feeds = nodes_of((1, 1, 4, 4), (1, 1, 3, 3), {"padding": 1, "method": "direct"})
    w = next(node for node in feeds if feeds[node].shape[2:] == (3, 3))
    feeds[w][0, 0, 0, 0] = np.inf
    (found,), _ = run([value], feeds, GPU, (), FLOAT32)
    assert np.isfinite(found[0, 0, 0]).all() and np.isfinite(found[0, 0, :, 0]).all()
    assert not np.isfinite(found[0, 0, 1:, 1:]).any()


@pytest.mark.parametrize("tf32", [False, True])
def test_every_tile_and_cut_has_the_value_and_gradients(tf32):
    """All that `likely` may choose, on a shape of several tiles, with K in one part and in many."""
    nodes, feeds = nodes_of((5, 6, 9, 8), (36, 6, 3, 3), {"padding": 1, "method": "implicit"})
    rounded = {node: values.astype(np.float32) for node, values in feeds.items()}
    wanted = evaluate(nodes, rounded)
    for tile, _ in implicit._TILES[tf32]:
        for parts in (1, 3):

            def as_said(instructions, kept, tile=tile, parts=parts):
                return choosing._as(instructions, (tile, parts))

            passes = (*([with_tf32] if tf32 else []), as_said)
            found, made = run(nodes, rounded, GPU, passes, FLOAT32)
            assert {e.tile for e in made.instructions if isinstance(e, ImplicitConvolution)} == {
                tile
            }
            for got, expected in zip(found, wanted, strict=True):
                bound = (2e-3 if tf32 else 2e-5) * np.abs(expected).max()
                np.testing.assert_allclose(got, expected, rtol=0, atol=bound, err_msg=str(tile))


def test_convolutions_in_tf32_round_their_operands_and_no_sums():
    nodes, feeds = nodes_of((2, 3, 6, 5), (4, 3, 3, 3), {"padding": 1, "method": "implicit"})
    rounded = {node: values.astype(np.float32) for node, values in feeds.items()}
    (exact, *_), _ = run(nodes, rounded, GPU, (), FLOAT32)
    (found, *_), _ = run(nodes, rounded, GPU, (with_tf32,), FLOAT32)
    assert 1e-5 < np.abs(found - exact).max() < 1e-2
    short = {n: (v.view(np.uint32) & 0xFFFFE000).view(np.float32) for n, v in rounded.items()}
    (exact, *_), _ = run(nodes, short, GPU, (), FLOAT32)
    (found, *_), _ = run(nodes, short, GPU, (with_tf32,), FLOAT32)
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-5)


def test_runs_whose_sums_are_cut_have_the_same_bits():
    nodes, feeds = nodes_of((9, 4, 12, 12), (5, 4, 3, 3), {"padding": 1, "method": "implicit"})
    rounded = {node: values.astype(np.float32) for node, values in feeds.items()}
    first, made = run(nodes, rounded, GPU, (), FLOAT32)
    assert max(e.parts for e in made.instructions if isinstance(e, ImplicitConvolution)) > 1
    for got, wanted in zip(made.run(), first, strict=True):
        np.testing.assert_array_equal(got.asnumpy(), wanted)


def trained(ctx, tf32=False, method="implicit", **said):
    """Losses of some steps of a small net, and its step."""
    random = np.random.default_rng(2)
    feeds = {"x": random.normal(size=(9, 4, 12, 12)), "y": random.normal(size=(9, 5, 6, 6))}
    x, y = ops.variable("x"), ops.variable("y")
    first = parameter("first", random.normal(0, 0.2, (6, 4, 3, 3)).astype(np.float32))
    second = parameter("second", random.normal(0, 0.2, (5, 6, 3, 3)).astype(np.float32))
    hidden = ops.relu(ops.conv2d(x, first, padding=1, method=method))
    loss = ops.mse(ops.conv2d(hidden, second, padding=1, stride=2, method=method), y)
    updates = optim.sgd([first, second], autodiff.gradients(loss, [first, second]), 0.3)
    step = dlsys.compile(loss, updates, ctx, tf32=tf32, **said)
    fed = {x: feeds["x"].astype(np.float32), y: feeds["y"].astype(np.float32)}
    return np.array([float(step(fed, as_numpy=True)) for _ in range(4)]), step


@pytest.mark.parametrize("tf32", [False, True])
def test_compiled_steps_train_without_columns(tf32):
    wanted, _ = trained(None)
    found, step = trained(GPU, tf32)
    np.testing.assert_allclose(found, wanted, rtol=1e-3 if tf32 else 1e-5)
    assert wanted[-1] < 0.9 * wanted[0]
    (run,) = step._runs.values()
    assert run.program.is_captured
    made = [e for e in run.program.instructions if isinstance(e, ImplicitConvolution)]
    assert {e.tf32 for e in made} == {tf32}
    assert max(e.parts for e in made) > 1


def test_steps_with_a_limit_of_memory_compute_convolutions_again():
    wanted, step = trained(GPU)
    (run,) = step._runs.values()
    found, step = trained(GPU, memory_limit=run.program.peak - 1)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("method", ["im2col", "implicit"])
def test_kernels_of_one_element_need_no_columns(method):
    nodes, feeds = nodes_of(*POINTS[:2], {**POINTS[2], "method": method})
    assert_as_numpy(nodes, feeds, GPU, "float32", 2e-5)
    if method == "im2col":
        kinds = {n: (v.shape, FLOAT32) for n, v in feeds.items()}
        order = autodiff.find_topo_sort(nodes[:1])
        made = program.Program(order, nodes[:1], kinds, GPU)
        assert [type(e).__name__ for e in made.instructions] == ["MatrixProduct"]


def test_what_the_implicit_method_refuses_it_says():
    windows = Windows((40, 40), (20, 20))
    assert "at most 31 together" in implicit.refusal(windows, (1, 1, 1), FLOAT32)
    assert "float64" in implicit.refusal(Windows((4, 4), (3, 3)), (1, 1, 1), dtypes.FLOAT64)
    assert implicit.refusal(Windows((40, 40), (15, 16)), (1, 1, 1), FLOAT32) == ""
    nodes, feeds = nodes_of((1, 1, 40, 40), (1, 1, 20, 20), {"method": "implicit"})
    fed = {n: ndarray.array(v, GPU, FLOAT32) for n, v in feeds.items()}
    with pytest.raises(NotImplementedError, match="takes kernels whose height and width"):
        autodiff.Executor(nodes, ctx=GPU).run(fed)


@pytest.mark.parametrize("method", ["implicit", "cudnn"])
def test_methods_of_a_gpu_are_refused_on_a_cpu(method):
    nodes, feeds = nodes_of((1, 2, 4, 4), (2, 2, 3, 3), {"method": method})
    fed = {n: ndarray.array(v, ndarray.cpu(0), FLOAT32) for n, v in feeds.items()}
    with pytest.raises(NotImplementedError, match=f"{method}.*(GPU alone|real GPU)"):
        autodiff.Executor(nodes, ctx=ndarray.cpu(0)).run(fed)


def test_cudnn_says_what_it_needs(monkeypatch):
    assert cudnn.refusal(FLOAT32) == "needs a real GPU"
    monkeypatch.setattr(cudnn, "is_emulated", lambda: False)
    monkeypatch.setattr(cudnn, "_library", lambda: None)
    assert "finds no libcudnn; hint: pip install" in cudnn.refusal(FLOAT32)
    assert "not in float64" in cudnn.refusal(dtypes.FLOAT64)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """One with cuDNN's functions, for the emulated GPU."""
    built = tmp_path_factory.mktemp("cudnn") / "libcudnn.so"
    source = Path(__file__).parent / "cudnn_by_loops.cu"
    made = ["make", "-s", "--no-print-directory", "-C", kernels.root(), "kernels"]
    made += [f"SOURCE={source}", f"TARGET={built}", f"PYTHON={sys.executable}"]
    subprocess.run(made, check=True)
    return built


@pytest.fixture
def with_cudnn(library, monkeypatch):
    """That library is found; what was made of another one is forgotten."""
    monkeypatch.setattr(cudnn, "is_emulated", lambda: False)
    monkeypatch.setattr(cudnn, "_places", lambda: [str(library)])
    cached = [each for each in vars(cudnn).values() if hasattr(each, "cache_clear")]
    for each in cached:
        each.cache_clear()
    yield
    for each in cached:
        each.cache_clear()


def test_cudnn_is_told_what_it_takes(with_cudnn):
    for seed in range(8):
        x, w, attributes = random_case(seed)
        nodes, feeds = nodes_of(x, w, {**attributes, "method": "cudnn"})
        assert_as_numpy(nodes, feeds, GPU, "float32", 2e-5)


def test_compiled_steps_train_with_cudnn_and_its_workspace(with_cudnn):
    wanted, _ = trained(None)
    found, step = trained(GPU, tf32=True, method="cudnn")
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    (run,) = step._runs.values()
    assert run.program.is_captured
    made = [e for e in run.program.instructions if isinstance(e, cudnn.CudnnConvolution)]
    assert [(e.tf32, len(e.written), e.sizes[-1]) for e in made] == [(True, 2, 640)] * 5


def test_what_cudnn_refuses_has_its_words(with_cudnn):
    with pytest.raises(RuntimeError, match="cudnnSetTensor4dDescriptor failed: CUDNN_STATUS_BAD"):
        cudnn._call("cudnnSetTensor4dDescriptor", cudnn._made("TensorDescriptor"), 1, 0, 1, 1, 1, 1)


@pytest.fixture
def kept(monkeypatch):
    """What is measured stays in this test; there is one tile, and no loops beside it."""
    found = {}
    monkeypatch.setattr(measured, "known", lambda *question: found.get(json.dumps(question)))
    monkeypatch.setattr(
        measured,
        "keep",
        lambda answer, *question, is_final=True: found.update(
            {json.dumps(question): answer if is_final else [answer, "for now"]}
        ),
    )
    monkeypatch.setitem(implicit._TILES, False, implicit._TILES[False][-1:])
    monkeypatch.setattr(choosing, "_FEW", 0)
    return found


def asked(kept, stride=1):
    """The method that the gradient of images gets."""
    said = {"padding": 1, "stride": stride}
    nodes, feeds = nodes_of((2, 3, 6, 5), (4, 3, 3, 3), said)
    node = nodes[1]
    shapes = [feeds[each].shape for each in node.inputs[:2]]
    shapes.append(nodes[0].op.infer_shape(nodes[0], shapes))
    views = [dataclasses.make_dataclass("Fed", ["shape", "dtype"])(s, FLOAT32) for s in shapes]
    return choosing.Chooser(program.Program, GPU, False).choose(node, views)


def test_a_shape_is_measured_once_and_its_choice_kept(kept, monkeypatch):
    assert asked(kept) == "implicit"
    (tile,) = [answer for question, answer in kept.items() if "tile" in question]
    assert tile[0] == implicit._TILES[False][0][0]
    monkeypatch.setattr(choosing, "_Trials", None)  # who measures again fails
    assert asked(kept) == "implicit"


def test_what_a_program_may_try_is_compiled_in_one_go(kept, monkeypatch):
    """Values and gradients of three convolutions, and then none of their trials compiles."""
    monkeypatch.setattr(program.ndarray, "is_emulated", lambda: False)
    monkeypatch.setattr(choosing, "_FEW", 1 << 25)
    asked_for, compiled = [], kernels.kernels

    def note(backend, keys):
        if not kernels.are_only_asked():
            asked_for.append(set(keys))
        return compiled(backend, keys)

    monkeypatch.setattr(kernels, "kernels", note)
    x, w = ops.variable("x"), [ops.variable(f"w{i}") for i in range(3)]
    y = x
    for each, stride in zip(w, (1, 2, 1), strict=True):
        y = ops.relu(ops.conv2d(y, each, padding=1, stride=stride))
    nodes = [y, *autodiff.gradients(ops.sum(y), w)]
    shapes = {x: (2, 3, 8, 8), w[0]: (4, 3, 3, 3), w[1]: (4, 4, 3, 3), w[2]: (5, 4, 3, 3)}
    random = np.random.default_rng(0)
    feeds = {node: random.normal(size=shape) for node, shape in shapes.items()}
    rounded = {node: values.astype(np.float32) for node, values in feeds.items()}
    found, made = run(nodes, rounded, GPU, (), FLOAT32)
    for got, wanted in zip(found, evaluate(nodes, feeds), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-4)
    first, *later = asked_for
    own = {e.key for e in made.instructions if "x0" not in repr(e.key)}
    assert len(later) > 8 * 2 and own and own <= first
    without = {("runner",), ("timer",), *(e.key for e in made.instructions)}
    assert set().union(*later) - without <= first
    answers = [each for each in kept if "tile" not in each]
    assert len(answers) == 8  # three values, as many of weights, and of images but the first


def test_who_only_asks_for_kernels_takes_no_memory(monkeypatch):
    """Of dozens of convolutions with large columns, before one is measured."""
    nodes, feeds = nodes_of((2, 3, 6, 5), (4, 3, 3, 3), {"padding": 1, "method": "im2col"})
    before = ndarray.allocations()
    asked = kernels.asked_by(lambda: run(nodes[:1], feeds, GPU, (), FLOAT32))
    assert asked and ndarray.allocations() == before


def test_the_fastest_method_is_chosen_and_one_that_fails_is_not(kept, monkeypatch):
    times = {"implicit": 3.0, "im2col": 2.0, "cudnn": 1.0, "direct": 1.5}

    def time(self, method, **tiles):
        if method == "cudnn":
            raise RuntimeError("no memory")
        return times[method]

    monkeypatch.setattr(choosing._Trials, "_time", time)
    monkeypatch.setattr(cudnn, "refusal", lambda dtype: "")
    assert asked(kept, stride=2) == "im2col"
    kept.clear()
    monkeypatch.setattr(choosing, "_FEW", 2 * 6 * 5 * 4 * 3 * 9)  # what this one multiplies
    assert asked(kept, stride=2) == "direct"


@pytest.mark.parametrize("error", [DeviceError("out of memory"), CompileError("no such thing")])
def test_a_method_whose_every_tile_fails_is_not_chosen(kept, monkeypatch, error):
    def time(self, method, **tiles):
        if method == "implicit":
            raise error
        return 1.0

    monkeypatch.setattr(choosing._Trials, "_time", time)
    monkeypatch.setattr(cudnn, "refusal", lambda dtype: "none here")
    with pytest.warns(UserWarning, match=f"'implicit' was not tried: {error}"):
        assert asked(kept, stride=2) == "im2col"
    assert list(kept.values()) == [[{"im2col": 1.0}, "for now"]]


def test_a_passing_failure_is_forgotten_with_the_process(monkeypatch):
    monkeypatch.setattr(measured, "_PASSING", {})
    monkeypatch.setattr(measured, "is_emulated", lambda: False)
    monkeypatch.setattr(measured, "_read", dict)
    measured.keep({"im2col": 1.0}, "a question", is_final=False)
    assert measured.known("a question") == {"im2col": 1.0}
    assert measured.known("another") is None


@pytest.mark.parametrize("ctx", [CPU, GPU], ids=["cpu", "gpu"])
@pytest.mark.parametrize("method", ["direct", "im2col", "auto"])
@pytest.mark.parametrize(("images", "filters"), [(2, 0), (0, 4)])
def test_no_filters_or_images_have_an_empty_result(images, filters, method, ctx):
    nodes, feeds = nodes_of((images, 3, 6, 5), (filters, 3, 3, 3), {"method": method})
    assert_as_numpy(nodes, feeds, ctx, "float32", 1e-6)


@pytest.mark.parametrize("is_known", [True, False])
def test_a_known_tile_is_used_if_there_is_still_such_a_one(kept, monkeypatch, is_known):
    x, w = ops.variable("x"), ops.variable("w")
    nodes = [ops.conv2d(x, w, method="implicit")]
    kinds = {x: ((1, 2, 9, 9), FLOAT32), w: ((3, 2, 3, 3), FLOAT32)}
    order = autodiff.find_topo_sort(nodes)
    (one,) = program.Program(order, nodes, kinds, GPU).instructions
    first, other = one.tile, (64, 32, 16, 4, 4, 4, 4)
    assert first != other
    if is_known:
        tiles = *implicit._TILES[False], (other, 0.1)
        monkeypatch.setitem(implicit._TILES, False, tiles)
    measured.keep((list(other), 1), *one.question)
    (one,) = program.Program(order, nodes, kinds, GPU).instructions
    assert (one.tile, one.parts) == (other if is_known else first, 1)


def test_the_emulated_gpu_measures_nothing():
    assert gpu.CONVOLUTION == "im2col"
    nodes, feeds = nodes_of((1, 2, 4, 4), (2, 2, 3, 3), {})
    kinds = {n: (v.shape, FLOAT32) for n, v in feeds.items()}
    made = program.Program(autodiff.find_topo_sort(nodes[:1]), nodes[:1], kinds, GPU)
    assert any(type(e).__name__ == "MatrixProduct" for e in made.instructions)
