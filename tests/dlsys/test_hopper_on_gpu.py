"""Convolutions on a Hopper GPU with tiles of all kinds: values, gradients, norms behind them."""

import functools

import numpy as np
import pytest
from test_convolution import GPU, nodes_of
from test_hopper import case, on_hopper, some_of
from test_moments import CHANNELS, PASSES, reduced

from dlsys import autodiff, dtypes, ndarray, ops
from dlsys.backend import gpu, kernels, program
from dlsys.backend.hopper import HopperConvolution
from dlsys.backend.hopper_last import LastConvolution
from dlsys.gradcheck import evaluate

pytestmark = on_hopper

SAME = {"stride": (1, 1), "padding": (1, 1), "dilation": (1, 1)}
#: Some have images of which a box has several, and taps that are a group; one of each with 64 rows.
CASES = (
    ((22, 64, 4, 4), (128, 64, 3, 3), SAME), ((11, 72, 4, 4), (64, 72, 3, 3), SAME),
    ((7, 128, 8, 8), (136, 128, 3, 3), SAME), ((3, 64, 16, 16), (64, 64, 3, 3), SAME),
    ((400, 16, 8, 8), (16, 16, 3, 3), SAME),  # more units than blocks, which keep the weights
    ((2, 32, 32, 32), (200, 32, 5, 3), {**SAME, "padding": (2, 1)}),
    ((21, 128, 8, 8), (200, 128, 1, 1), {**SAME, "padding": (0, 0), "stride": (2, 2)}),
    *map(case, range(6)),
)  # fmt: skip
#: Tiles of a convolution that are tried.
_TURNS = 7
#: dtype, whether it may round to TF32 -> error, of the largest value.
_BOUNDS = {
    (dtypes.BFLOAT16, True): 6e-3, (dtypes.FLOAT32, True): 1e-3, (dtypes.FLOAT32, False): 2e-5
}  # fmt: skip


def some_tiles(plans, parts=None):
    """(shape, parts): some; and the largest of several images whose taps are a group, if any."""
    several = [plan for plan in plans if plan[0][5:6] > (1,) and plan[0][3] > 1]
    found = sorted({*some_of(plans), *several[:1], *sorted(several, key=lambda p: p[0][3])[-1:]})
    return [(shape, parts or own) for shape, own in found]


def tiled(instructions, kept, turn, parts=None):
    """The instructions; convolutions have a tile of their own each turn, perhaps in one part."""
    found = []
    for each in instructions:
        is_last = isinstance(each, LastConvolution)
        if isinstance(each, HopperConvolution):
            plans = some_tiles(each.likely(1000), parts)
            each.cut(*plans[turn % len(plans)])
        found += each.and_sum() if is_last else [each]
    return found


def programs(outputs, fed, tf32, **said):
    """What makes a program for each turn; fed: node -> array."""
    kinds = {node: (values.shape, values.dtype) for node, values in fed.items()}
    order = autodiff.find_topo_sort(outputs)
    return [
        functools.partial(
            program.Program, order, outputs, kinds, GPU, tf32=tf32,
            tiles=functools.partial(tiled, turn=turn, parts=said.get("parts")), passes=PASSES,
        )
        for turn in range(_TURNS)
    ]  # fmt: skip


def compile_for(makers):
    """Compiles the kernels of all programs in one go."""
    kernels.kernels(gpu, [key for make in makers for key in kernels.asked_by(make)])


def run(made, fed):
    """Its outputs, as float64."""
    made.feed({n: ndarray.array(v, GPU, v.dtype) for n, v in fed.items()})
    return [each.asnumpy().astype(np.float64) for each in made.run()]


@pytest.mark.parametrize(("dtype", "tf32"), list(_BOUNDS), ids=str)
def test_values_and_gradients_with_tiles_of_all_kinds(dtype, tf32):
    trials = []
    for x, w, attributes in CASES:
        nodes, feeds = nodes_of(x, w, {**attributes, "method": "wgmma"})
        rounded = {node: values.astype(dtype) for node, values in feeds.items()}
        trials.append(((x, w), nodes, rounded, programs(nodes, rounded, tf32)))
    compile_for(make for *_, makers in trials for make in makers)
    for what, nodes, rounded, makers in trials:
        exact = evaluate(nodes, {n: v.astype(np.float64) for n, v in rounded.items()})
        for turn, make in enumerate(makers):
            made = make()
            shapes = [e._shape for e in made.instructions if isinstance(e, HopperConvolution)]
            assert len(shapes) == 3
            for got, wanted in zip(run(made, rounded), exact, strict=True):
                bound = _BOUNDS[dtype, tf32] * np.abs(wanted).max()
                told = f"{what}, turn {turn}, tiles {shapes}"
                np.testing.assert_allclose(got, wanted, rtol=0, atol=bound, err_msg=told)


@pytest.mark.parametrize("parts", [1, None], ids=["one part", "parts"])
@pytest.mark.parametrize("dtype", [dtypes.BFLOAT16, dtypes.FLOAT32], ids=str)
def test_norms_behind_tiles_of_all_kinds(dtype, parts):
    """Values, means, variances, from moments of tiles or from parts."""
    trials = []
    for number, (x, w, attributes) in enumerate(CASES):
        a, b = ops.variable("x"), ops.variable("w")
        y = ops.conv2d(a, b, **{**attributes, "method": "wgmma"})
        random = np.random.default_rng(number)
        fed = {a: random.normal(1, 1, x).astype(dtype), b: random.normal(0, 1, w).astype(dtype)}
        outputs = [y, *reduced(y)]
        trials.append(((x, w), outputs, fed, programs(outputs, fed, True, parts=parts)))
    compile_for(make for *_, makers in trials for make in makers)
    exactness = 8e-3 if dtype == dtypes.BFLOAT16 else 2e-3  # of values; results are rounded, too
    for (x, w), outputs, fed, makers in trials:
        exact = evaluate(outputs, {n: v.astype(np.float64) for n, v in fed.items()})
        bound, of_sums = exactness * np.abs(exact[0]).max(), 1e-2 if exactness > 2e-3 else 1e-4
        for turn, make in enumerate(makers):
            made = make()
            if parts == 1 and w[0] % 8 == 0:  # others have channels of zeros
                assert any(getattr(each, "of_moments", False) for each in made.instructions)
            shapes = [e._shape for e in made.instructions if isinstance(e, HopperConvolution)]
            told = f"{x}, {w}, turn {turn}, tiles {shapes}"
            value, mean, variance = run(made, fed)
            close = functools.partial(np.testing.assert_allclose, err_msg=told)
            close(value, exact[0], rtol=0, atol=bound)
            close(mean, value.mean(CHANNELS), rtol=of_sums, atol=bound / 50)
            close(variance, value.var(CHANNELS), rtol=of_sums, atol=(bound / 50) ** 2)
