"""Convolutions and pooling: every method beside the others, and all beside PyTorch."""

import numpy as np
import pytest

from dlsys import autodiff, ndarray, ops
from dlsys.backend.images import Convolve
from dlsys.backend.program import Program
from dlsys.dtypes import FLOAT32
from dlsys.gradcheck import evaluate
from dlsys.ops.base import ShapeError
from dlsys.ops.convolution import METHODS
from dlsys.ops.winograd import TILES

CPU, GPU = ndarray.cpu(0), ndarray.gpu(0)

#: x, w, and attributes: odd sizes, 1 x 1, groups, single rows, kernels as large as the image.
CASES = [
    ((3, 4, 9, 7), (6, 4, 3, 3), {"padding": 1}),
    ((2, 4, 8, 9), (6, 2, 3, 2), {"stride": (2, 3), "padding": (1, 0), "groups": 2}),
    ((2, 3, 11, 9), (5, 3, 3, 2), {"stride": 2, "padding": 3, "dilation": (2, 4)}),
    ((3, 5, 6, 6), (10, 1, 5, 5), {"padding": 2, "groups": 5}),
    ((2, 6, 5, 7), (3, 6, 1, 1), {}),
    ((2, 6, 5, 7), (4, 3, 1, 1), {"stride": 2, "groups": 2}),
    ((1, 2, 4, 5), (3, 2, 4, 5), {}),
    ((1, 1, 1, 6), (1, 1, 1, 1), {"padding": 1}),
    ((70, 3, 33, 31), (4, 3, 3, 3), {"stride": 2, "padding": 1}),
]
IDS = [str(number) for number in range(len(CASES))]
POOLS = [
    {"kernel": 2},
    {"kernel": 3, "stride": 2, "padding": 1},
    {"kernel": (2, 3), "stride": (3, 2), "ceil": True},
    {"kernel": 3, "stride": 3, "padding": 1, "ceil": True},
    {"kernel": 2, "stride": 3, "padding": 1, "ceil": True},
]


def nodes_of(x_shape, w_shape, attributes):
    """(value and both gradients, feeds)."""
    random = np.random.default_rng(3)
    x, w, g = (autodiff.Variable(name=name) for name in "xwg")
    value = ops.conv2d(x, w, **attributes)
    shape = value.op.infer_shape(value, [x_shape, w_shape])
    feeds = {x: random.normal(size=x_shape), w: random.normal(size=w_shape)}
    feeds[g] = random.normal(size=shape)
    return [value, *autodiff.gradients(ops.sum(value * g), [x, w])], feeds


def assert_as_numpy(nodes, feeds, ctx, dtype, tolerance):
    rounded = {node: values.astype(dtype) for node, values in feeds.items()}
    fed = {n: ndarray.array(v, ctx, np.dtype(dtype)) for n, v in rounded.items()}
    wanted = evaluate(nodes, rounded)
    for got, expected in zip(autodiff.Executor(nodes, ctx=ctx).run(fed, True), wanted, strict=True):
        bound = tolerance * np.abs(expected).max(initial=0)
        np.testing.assert_allclose(got, expected, rtol=0, atol=bound)


@pytest.mark.parametrize("method", ["im2col", "image", "shifted", "direct"])
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_every_method_of_a_cpu_computes_value_and_gradients(case, method):
    x, w, attributes = case
    nodes, feeds = nodes_of(x, w, {**attributes, "method": method})
    assert_as_numpy(nodes, feeds, CPU, "float64", 1e-13)
    assert_as_numpy(nodes, feeds, CPU, "float32", 2e-5)


@pytest.mark.parametrize("method", ["im2col", "implicit", "direct"])
def test_every_method_of_a_gpu_computes_value_and_gradients(method):
    for x, w, attributes in CASES[:-1]:
        nodes, feeds = nodes_of(x, w, {**attributes, "method": method})
        assert_as_numpy(nodes, feeds, GPU, "float32", 2e-5)


@pytest.mark.parametrize(
    ("x", "w", "attributes", "parts"),
    [
        ((16, 4, 32, 32), (1, 4, 3, 3), {"padding": 1}, 8),
        ((14, 2, 33, 31), (3, 2, 3, 3), {"stride": 1, "dilation": 2}, 5),
        ((9, 4, 41, 31), (6, 2, 3, 3), {"groups": 2, "padding": 2}, 5),
        ((16, 16, 32, 32), (16, 16, 3, 3), {"padding": 1}, 1),
        ((16, 4, 33, 32), (1, 4, 3, 2), {}, 7),  # which kernels of other sizes do not need
        ((1, 4, 32, 32), (16, 4, 3, 3), {"padding": 1}, 1),  # four threads for an element
        ((2, 3, 11, 10), (22, 3, 3, 3), {"padding": 2, "stride": 2, "dilation": 2}, 1),
        ((3, 4, 9, 10), (18, 2, 3, 3), {"groups": 2}, 1),
    ],
)
def test_few_kernels_and_many_windows_are_added_up_in_parts(x, w, attributes, parts):
    nodes, feeds = nodes_of(x, w, {**attributes, "method": "direct"})
    kinds = {node: (values.shape, FLOAT32) for node, values in feeds.items()}
    made = Program(autodiff.find_topo_sort(nodes), nodes, kinds, GPU)
    found = {each.kind: each.parts for each in made.instructions if isinstance(each, Convolve)}
    assert found == {"value": 1, "data": 1, "weights": parts}
    assert_as_numpy(nodes, feeds, GPU, "float32", 2e-5)
    assert_as_numpy(nodes, feeds, GPU, "float64", 1e-12)


#: x, w and padding of Winograd's method: parts of tiles, images that are smaller than one.
IN_TILES = [
    ((3, 4, 9, 7), (6, 4, 3, 3), 1),
    ((2, 3, 8, 12), (5, 3, 3, 3), 0),
    ((1, 2, 3, 3), (2, 2, 3, 3), 0),
    ((2, 1, 1, 4), (3, 1, 3, 3), (1, 2)),
]


@pytest.mark.parametrize("ctx", [CPU, GPU], ids=["cpu", "gpu"])
@pytest.mark.parametrize("method", TILES)
def test_tiles_of_either_size_have_the_value_and_gradients(method, ctx):
    for x, w, padding in IN_TILES:
        nodes, feeds = nodes_of(x, w, {"padding": padding, "method": method})
        assert_as_numpy(nodes, feeds, ctx, "float32", 1e-4)
        if ctx is CPU:
            assert_as_numpy(nodes, feeds, ctx, "float64", 1e-12)


@pytest.mark.parametrize("attributes", [{"stride": 2}, {"dilation": 2}, {"padding": 3}])
def test_winograd_s_method_says_what_it_takes(attributes):
    x, w = ops.variable("x", (1, 2, 8, 8)), ops.variable("w", (2, 2, 3, 3))
    with pytest.raises(ShapeError, match="takes kernels of 3 x 3, stride"):
        ops.conv2d(x, w, method="winograd4", **attributes)


#: x, w and attributes of spectra: one tile and several, even and odd sides, single elements,
#: kernels that are large, far apart, as large as the image, and borders beyond them.
IN_SPECTRA = [
    ((3, 4, 9, 7), (6, 4, 3, 3), {"padding": 1}),
    ((2, 3, 31, 17), (5, 3, 3, 2), {"padding": (0, 3)}),
    ((2, 2, 40, 70), (3, 2, 11, 5), {"padding": (5, 2)}),
    ((1, 2, 40, 21), (2, 2, 3, 4), {"dilation": (3, 2), "padding": 4}),
    ((2, 3, 4, 5), (2, 3, 4, 5), {}),
    ((1, 1, 1, 6), (1, 1, 1, 1), {"padding": 1}),
    ((2, 6, 9, 19), (3, 6, 1, 1), {}),
]


@pytest.mark.parametrize("ctx", [CPU, GPU], ids=["cpu", "gpu"])
@pytest.mark.parametrize("case", IN_SPECTRA, ids=map(str, range(len(IN_SPECTRA))))
def test_spectra_have_the_value_and_gradients(case, ctx):
    x, w, attributes = case
    nodes, feeds = nodes_of(x, w, {**attributes, "method": "fft"})
    assert_as_numpy(nodes, feeds, ctx, "float32", 2e-6)
    assert_as_numpy(nodes, feeds, ctx, "float64", 1e-14)


@pytest.mark.parametrize("attributes", [{"stride": (1, 2)}, {"groups": 2}])
def test_the_method_of_spectra_says_what_it_takes(attributes):
    x, w = (
        ops.variable("x", (1, 2, 8, 8)),
        ops.variable("w", (2, 2 if "stride" in attributes else 1, 3, 3)),
    )
    with pytest.raises(ShapeError, match='"fft" takes a stride and groups of 1'):
        ops.conv2d(x, w, method="fft", **attributes)


def test_spectra_of_halves_are_refused():
    nodes, feeds = nodes_of((1, 2, 4, 4), (2, 2, 3, 3), {"method": "fft"})
    fed = {node: ndarray.array(each, CPU, np.dtype("float16")) for node, each in feeds.items()}
    with pytest.raises(NotImplementedError, match="float32 and float64 alone"):
        autodiff.Executor(nodes, ctx=CPU).run(fed)


def test_every_method_has_been_tested():
    known = ("auto", "im2col", "image", "shifted", "implicit", "wgmma", "cudnn", "direct", "fft")
    assert (*known, *TILES) == METHODS


def test_a_method_that_a_back_end_lacks_is_refused():
    nodes, feeds = nodes_of((1, 2, 4, 4), (2, 2, 3, 3), {"method": "image"})
    with pytest.raises(NotImplementedError, match='a CPU alone; hint: "auto" or "implicit"'):
        autodiff.Executor(nodes, ctx=GPU).run(feeds)


def test_the_choice_of_a_back_end_is_one_of_its_methods():
    nodes, feeds = nodes_of((2, 3, 5, 5), (4, 3, 3, 3), {"padding": 1})
    for ctx in (CPU, GPU):
        assert_as_numpy(nodes, feeds, ctx, "float32", 2e-5)


def test_gradients_do_not_depend_on_the_number_of_threads():
    from dlsys.backend import program

    nodes, feeds = nodes_of(*CASES[-1])
    found, before = [], program.threads()
    try:
        for count in (1, 2, 3):
            program.set_threads(count)
            found.append(autodiff.Executor(nodes, ctx=CPU).run(feeds, True))
    finally:
        program.set_threads(before)
    for other in found[1:]:
        for got, wanted in zip(other, found[0], strict=True):
            np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("ctx", [None, CPU, GPU], ids=["numpy", "cpu", "gpu"])
def test_images_may_have_their_channels_last(ctx):
    random = np.random.default_rng(5)
    x, w, b = (autodiff.Variable(name=name) for name in "xwb")
    feeds = {x: random.normal(size=(2, 5, 4, 3)), w: random.normal(size=(4, 3, 3, 3))}
    feeds[b] = random.normal(size=4)
    last = ops.conv2d(x, w, b, padding=1, layout="NHWC")
    first = ops.conv2d(ops.transpose(x, (0, 3, 1, 2)), w, b, padding=1)
    got, wanted = autodiff.Executor([last, first], ctx=ctx).run(feeds, True)
    assert got.shape == (2, 5, 4, 4)
    np.testing.assert_array_equal(got, wanted.transpose(0, 2, 3, 1))


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_pytorch_has_the_same_value_and_gradients(case):
    torch = pytest.importorskip("torch")
    nodes, feeds = nodes_of(*case)
    x, w, g = (torch.tensor(values, requires_grad=True) for values in feeds.values())
    value = torch.nn.functional.conv2d(x, w, **case[2])
    value.backward(g.detach())
    wanted = [value.detach(), x.grad, w.grad]
    for got, expected in zip(evaluate(nodes, feeds), wanted, strict=True):
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12 * expected.abs().max())


def pooled(op, attributes, values):
    """(value and gradient, feeds)."""
    x, g = autodiff.Variable(name="x"), autodiff.Variable(name="g")
    value = op(x, **attributes)
    shape = value.op.infer_shape(value, [values.shape])
    feeds = {x: values, g: np.random.default_rng(4).normal(size=shape)}
    return [value, *autodiff.gradients(value * g, [x])], feeds


def equal_ones():
    """Images where many elements are equal, some planes are -inf, and one element is NaN."""
    values = np.random.default_rng(6).integers(0, 3, (3, 4, 8, 7)).astype(float)
    values[0, 1] = -np.inf
    values[1, 2, 3:, :4] = -np.inf
    values[2, 3, 4, 4] = np.nan
    return values


@pytest.mark.parametrize("attributes", POOLS, ids=str)
def test_pytorch_has_the_same_largest_elements_and_places(attributes):
    torch = pytest.importorskip("torch")
    values = equal_ones()
    nodes, feeds = pooled(ops.max_pool, attributes, values)
    said = {"kernel_size": attributes["kernel"], "stride": attributes.get("stride")}
    said |= {"padding": attributes.get("padding", 0), "ceil_mode": attributes.get("ceil", False)}
    x, g = (torch.tensor(each, requires_grad=True) for each in feeds.values())
    value = torch.nn.functional.max_pool2d(x, **said)
    value.backward(g.detach())
    got, grad = evaluate(nodes, feeds)
    np.testing.assert_array_equal(got, value.detach())
    np.testing.assert_allclose(grad, x.grad, rtol=0, atol=1e-14)


@pytest.mark.parametrize("with_border", [True, False])
@pytest.mark.parametrize("attributes", POOLS, ids=str)
def test_pytorch_has_the_same_means(attributes, with_border):
    torch = pytest.importorskip("torch")
    values = np.random.default_rng(6).normal(size=(3, 4, 8, 7))
    nodes, feeds = pooled(ops.average_pool, {**attributes, "with_border": with_border}, values)
    said = {"kernel_size": attributes["kernel"], "stride": attributes.get("stride")}
    said |= {"padding": attributes.get("padding", 0), "ceil_mode": attributes.get("ceil", False)}
    x, g = (torch.tensor(each, requires_grad=True) for each in feeds.values())
    value = torch.nn.functional.avg_pool2d(x, **said, count_include_pad=with_border)
    value.backward(g.detach())
    for got, wanted in zip(evaluate(nodes, feeds), (value.detach(), x.grad), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-14)


@pytest.mark.parametrize("ctx", [CPU, GPU], ids=["cpu", "gpu"])
def test_back_ends_choose_the_elements_that_numpy_does(ctx):
    dtype = np.float32
    for attributes in POOLS:
        nodes, feeds = pooled(ops.max_pool, attributes, equal_ones())
        feeds = {node: values.astype(dtype) for node, values in feeds.items()}
        wanted = evaluate(nodes, feeds)
        got = autodiff.Executor(nodes, ctx=ctx).run(feeds, True)
        np.testing.assert_array_equal(got[0], wanted[0])
        np.testing.assert_allclose(got[1], wanted[1], rtol=0, atol=1e-6)


def random_windows(seed):
    """A size of images, wider and higher than a block's tile, and windows of up to that size."""
    random = np.random.default_rng(seed)
    size = tuple(int(each) for each in random.integers(1, [2, 3, 64, 150], endpoint=True))
    kernel = [min(int(random.integers(1, 32)), 1 + side) for side in size[2:]]
    padding = [int(random.integers(0, each // 2, endpoint=True)) for each in kernel]
    rooms = zip(kernel, size[2:], padding, strict=True)
    return size, {
        "kernel": tuple(min(each, side + 2 * pad) for each, side, pad in rooms),
        "stride": tuple(int(each) for each in random.integers(1, 4, 2)),
        "padding": tuple(padding), "ceil": bool(random.integers(2)),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("size", "attributes"),
    [
        *map(random_windows, range(8)),
        # More windows of a tile than a block has room for at once: of some rows, and of a row.
        ((2, 3, 40, 150), {"kernel": (20, 31), "stride": 1}),
        ((1, 1, 3, 3000), {"kernel": (2, 1600), "stride": 1}),
    ],
)
def test_back_ends_choose_the_elements_of_any_windows(size, attributes):
    values = np.random.default_rng(0).integers(0, 4, size).astype(np.float32)
    nodes, feeds = pooled(ops.max_pool, attributes, values)
    feeds = {node: values.astype(np.float32) for node, values in feeds.items()}
    largest, grad = evaluate(nodes, feeds)
    on_cpu, on_gpu = (autodiff.Executor(nodes, ctx=ctx).run(feeds, True) for ctx in (CPU, GPU))
    np.testing.assert_array_equal(on_cpu[0], largest)
    np.testing.assert_allclose(on_cpu[1], grad, rtol=0, atol=1e-5 * (1 + np.abs(grad).max()))
    for of_gpu, of_cpu in zip(on_gpu, on_cpu, strict=True):
        np.testing.assert_array_equal(of_gpu, of_cpu)  # sums in the same order


def test_images_without_elements_can_not_be_pooled():
    with pytest.raises(ValueError, match="images of 0 x 4 have no elements to pool"):
        ops.max_pool(ops.variable("x", (1, 1, 0, 4)), kernel=2, padding=1)


def test_the_mean_of_a_plane_is_one_number():
    x = autodiff.Variable(name="x")
    values = np.random.default_rng(1).normal(size=(2, 3, 4, 5))
    (got,) = evaluate([ops.global_average_pool(x)], {x: values})
    np.testing.assert_allclose(got, values.mean((2, 3)))


@pytest.mark.parametrize(
    ("x", "w", "attributes", "said"),
    [
        ((1, 3, 4, 4), (2, 2, 3, 3), {}, "filters take 2 channels, the images have 3"),
        ((1, 4, 4, 4), (3, 2, 3, 3), {"groups": 2}, "4 channels and 3 filters have no 2 groups"),
        ((1, 2, 4, 4), (1, 2, 5, 3), {}, "don't fit into images of"),
        ((2, 4, 4), (1, 2, 3, 3), {}, "both have four axes"),
    ],
)
def test_shapes_that_do_not_fit_are_told_at_once(x, w, attributes, said):
    with pytest.raises(ShapeError, match=said):
        ops.conv2d(ops.variable("x", x), ops.variable("w", w), **attributes)


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({"stride": 0}, "stride is 0; hint: a whole number from 1 on, or two"),
        ({"padding": (1, 2, 3)}, r"padding is \(1, 2, 3\)"),
        (
            {"method": "fast"},
            "method is 'fast', not one of auto, im2col, image, shifted, implicit, wgmma",
        ),
        ({"layout": "CHWN"}, "layout is 'CHWN'; hint"),
    ],
)
def test_arguments_that_mean_nothing_are_refused(attributes, said):
    x, w = ops.variable("x"), ops.variable("w")
    with pytest.raises(ValueError, match=said):
        ops.conv2d(x, w, **attributes)


def test_a_padding_of_more_than_half_a_window_is_refused():
    with pytest.raises(ValueError, match="more than half of the kernel"):
        ops.max_pool(ops.variable("x"), kernel=2, padding=2)
