"""Products that go on with what follows them, and launches side by side."""

import itertools

import numpy as np
import pytest
from test_fusion import CPU, GPU, run

from apart import lay_apart
from dlsys import autodiff, dtypes, ops
from dlsys.backend import gemm, program, streams
from dlsys.backend.fusion import fuse
from dlsys.backend.gemm import Gemm, with_products, with_tf32

FLOAT32 = dtypes.FLOAT32
PASSES = (fuse, with_products)

#: m, n, k: single elements, parts of a tile, tiles and one more, K in one part and in many.
SIZES = [
    (1, 1, 1), (3, 5, 7), (33, 31, 9), (64, 32, 64), (65, 33, 300), (7, 130, 1000), (130, 3, 65),
]  # fmt: skip


def numbers(*shapes):
    """Random arrays."""
    random = np.random.default_rng(0)
    return [random.normal(size=shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize("tf32", [False, True])
@pytest.mark.parametrize(
    ("size", "tile"),
    [((1300, 810, 2), (64, 64)), ((2816, 1024, 2), (128, 256)), ((104900, 10, 3), (32, 32))],
    ids=["middle", "large", "tall"],
)
def test_large_products_have_tiles_that_keep_a_gpu_busy(size, tile, tf32):
    """Those of many columns in TF32 are cuBLAS's."""
    m, n, k = size
    a, b = numbers((m, k), (k, n))
    x, y = ops.variable("x"), ops.variable("y")
    passes = (with_tf32, *PASSES) if tf32 else PASSES
    (found,), made = run([ops.relu(x @ y)], {x: a, y: b}, GPU, passes, FLOAT32)
    bound = (2e-3 if tf32 else 1e-6) * (np.abs(a) @ np.abs(b)).max()
    np.testing.assert_allclose(found, np.maximum(a @ b, 0), rtol=0, atol=bound)
    first = made.instructions[0]
    assert isinstance(first, Gemm) == (not tf32 or n == 10)
    if isinstance(first, Gemm):
        assert first.tile[:2] == tile and ("kTf32" in first.tile) == tf32


@pytest.mark.parametrize("flips", ["", "a", "b", "ab"])
def test_a_product_with_bias_and_relu_is_one_kernel(flips):
    for m, n, k in SIZES:
        a, b, bias = numbers((m, k), (k, n), (n,))
        x, y, z = (ops.variable(name) for name in "xyz")
        fed = {x: a.T if "a" in flips else a, y: b.T if "b" in flips else b, z: bias}
        left, right = (x.T if "a" in flips else x), (y.T if "b" in flips else y)
        outputs = [ops.relu(left @ right + z)]
        (found,), made = run(outputs, fed, GPU, PASSES, FLOAT32)
        wanted = np.maximum(a.astype(float) @ b + bias, 0)
        bound = 1e-6 * (1 + np.abs(a).astype(float) @ np.abs(b)).max()
        np.testing.assert_allclose(found, wanted, rtol=0, atol=bound, err_msg=str((m, n, k)))
        assert [type(each) for each in made.instructions] == [Gemm]
        np.testing.assert_array_equal(made.run()[0].asnumpy(), found)


def test_a_layer_is_updated_by_one_kernel_with_its_bias():
    for m, n, k in SIZES:
        images, grads, weights, bias = numbers((k, m), (k, n), (m, n), (n,))
        x, g, w, b = (ops.variable(name) for name in "xgwb")
        news = {w: w - 0.5 * (x.T @ g), b: b - 0.5 * ops.sum(g, 0)}
        fed = {x: images, g: grads, w: weights, b: bias}
        (first, second), made = run(list(news.values()), fed, GPU, PASSES, FLOAT32)
        np.testing.assert_allclose(
            first, weights - 0.5 * (images.T.astype(float) @ grads), rtol=0, atol=1e-5 * k
        )
        np.testing.assert_allclose(
            second, bias - 0.5 * grads.sum(0, dtype=float), rtol=0, atol=1e-5 * k
        )
        assert any(isinstance(each, Gemm) and (each.sums or n == 1) for each in made.instructions)


@pytest.mark.parametrize(
    "tile", [(32, 32, 32, 4, 4, 2, 4), (64, 64, 16, 4, 4, 4, 3), (128, 128, 16, 8, 8, 3, 1)],
    ids=["small", "middle", "large"],
)  # fmt: skip
def test_parts_in_a_cluster_add_up_products_and_columns_as_in_memory(tile, monkeypatch):
    """To the same bits; a GPU without clusters, as the emulated one, adds up in memory."""
    images, grads, bias = numbers((1037, 70), (1037, 130), (130,))
    x, g, b = (ops.variable(name) for name in "xgb")
    fed = {x: images, g: grads, b: bias}
    found = []
    for where in ("kInMemory", "kInCluster"):
        chosen = (*tile, "kAsTheyLie", where)
        monkeypatch.setattr(gemm, "_choice", lambda *shape, tile=chosen: (tile, 5))
        news, made = run([x.T @ g * 0.5, b - ops.sum(g, 0)], fed, GPU, PASSES, FLOAT32)
        assert [(each.tile, each.parts) for each in made.instructions] == [(chosen, 5)]
        found.append(news)
    for in_memory, in_cluster in zip(*found, strict=True):
        np.testing.assert_array_equal(in_memory, in_cluster)
    product, sums = found[1]
    np.testing.assert_allclose(product, 0.5 * (images.T.astype(float) @ grads), rtol=0, atol=1e-3)
    np.testing.assert_allclose(sums, bias - grads.sum(0, dtype=float), rtol=0, atol=1e-3)


def test_a_value_that_others_need_before_the_product_makes_no_circle():
    """The bias needs the sum of the product itself."""
    a, b = numbers((6, 6), (6, 6))
    x, y = ops.variable("x"), ops.variable("y")
    product = x @ y
    outputs = [ops.relu(product + ops.sum(product, 0))]
    (found,), _ = run(outputs, {x: a, y: b}, GPU, PASSES, FLOAT32)
    wanted = a.astype(float) @ b
    np.testing.assert_allclose(found, np.maximum(wanted + wanted.sum(0), 0), atol=1e-4)


def test_double_precision_and_batches_stay_products():
    a, b = numbers((2, 3, 4), (2, 4, 5))
    x, y = ops.variable("x"), ops.variable("y")
    (found,), made = run([ops.relu(x @ y)], {x: a, y: b}, GPU, PASSES, FLOAT32)
    np.testing.assert_allclose(found, np.maximum(a @ b, 0), atol=1e-5)
    assert not any(isinstance(each, Gemm) for each in made.instructions)


def random_step(seed):
    """Layers of random widths, their loss, and the updates of all parameters."""
    random = np.random.default_rng(seed)
    widths = random.integers(1, 40, random.integers(2, 5))
    batch, fed = int(random.integers(1, 70)), {}
    x, y = ops.variable("x"), ops.variable("y")
    fed[x] = random.normal(size=(batch, widths[0]))
    fed[y] = random.normal(size=(batch, widths[-1]))
    hidden, params = x, []
    for i, (before, after) in enumerate(itertools.pairwise(widths)):
        w, b = ops.variable(f"w{i}"), ops.variable(f"b{i}")
        fed[w], fed[b] = random.normal(0, 0.3, (before, after)), random.normal(size=after)
        hidden = random.choice([ops.relu, ops.tanh])(hidden @ w + b)
        params += [w, b]
    loss = ops.mse(hidden, y)
    news = [p - 0.1 * g for p, g in zip(params, autodiff.gradients(loss, params), strict=True)]
    return [loss, *news], fed


@pytest.mark.parametrize("seed", range(12))
def test_random_steps_are_the_same_with_products_that_go_on(seed):
    outputs, fed = random_step(seed)
    wanted, _ = run(outputs, fed, CPU, (), dtypes.FLOAT64)
    got, made = run(outputs, fed, GPU, PASSES, FLOAT32)
    assert any(isinstance(each, Gemm) for each in made.instructions)
    for found, expected in zip(got, wanted, strict=True):
        bound = 2e-5 * (1 + np.abs(expected).max())
        np.testing.assert_allclose(found, expected, rtol=0, atol=bound)


def random_training(seed):
    """As random_step; weights may lie transposed, updates may have momentum, and somebody may want
    to see a gradient."""
    random = np.random.default_rng(seed)
    widths, batch = random.integers(1, 50, random.integers(2, 5)), int(random.integers(1, 70))
    x, y = ops.variable("x"), ops.variable("y")
    fed = {x: random.normal(size=(batch, widths[0])), y: random.normal(size=(batch, widths[-1]))}
    hidden, params = x, []
    for i, (before, after) in enumerate(itertools.pairwise(widths)):
        w, b = ops.variable(f"w{i}"), ops.variable(f"b{i}")
        turned = random.random() < 0.5
        fed[w] = random.normal(0, 0.3, (after, before) if turned else (before, after))
        fed[b] = random.normal(size=after)
        hidden = hidden @ (w.T if turned else w) + b
        hidden = random.choice([ops.relu, ops.tanh])(hidden) if i < len(widths) - 2 else hidden
        params += [w, b]
    loss = ops.mse(hidden, y)
    outputs = [loss]
    for p, g in zip(params, autodiff.gradients(loss, params), strict=True):
        way = random.integers(4)
        if way == 0:
            outputs.append(g)
        if way <= 1:
            velocity = ops.variable(f"v of {p.name}")
            fed[velocity] = random.normal(size=fed[p].shape)
            g = velocity * 0.9 + g
            outputs.append(g)
        if way <= 2:
            outputs.append(p - 0.1 * g)
    return outputs, fed


@pytest.mark.parametrize("seed", range(24))
def test_random_trainings_write_where_their_values_lie(seed, monkeypatch):
    lay_apart(monkeypatch)
    outputs, fed = random_training(seed)
    wanted, _ = run(outputs, fed, CPU, (), dtypes.FLOAT64)
    got, _ = run(outputs, fed, GPU, PASSES, FLOAT32)
    for found, expected in zip(got, wanted, strict=True):
        bound = 2e-5 * (1 + np.abs(expected).max())
        np.testing.assert_allclose(found, expected, rtol=0, atol=bound)


def test_parts_of_k_cover_it(monkeypatch):
    """Whatever the number of parts, each slice of K is in one of them."""
    for blocks, least in ((1, 1), (4, 16), (64, 1)):
        monkeypatch.setattr(gemm, "_BLOCKS", blocks)
        monkeypatch.setattr(gemm, "_LEAST_DEPTH", least)
        a, b = numbers((5, 333), (333, 6))
        x, y = ops.variable("x"), ops.variable("y")
        (found,), made = run([ops.tanh(x @ y)], {x: a, y: b}, GPU, PASSES, FLOAT32)
        np.testing.assert_allclose(found, np.tanh(a.astype(float) @ b), atol=1e-4)
        (one,) = made.instructions
        assert (
            one.parts * one.of_part * one.tile[2]
            >= 333
            > (one.parts - 1) * one.of_part * one.tile[2]
        )


def all_behind(instructions, place_of):
    """For each instruction all that it waits for, by its stream and by events."""
    waits = streams.needed(instructions, place_of)
    stream_of, pairs = streams.assigned(waits)
    behind = []
    for number, others in enumerate(waits):
        on_stream = [n for n in range(number) if stream_of[n] == stream_of[number]]
        elsewhere = [b for a, b in pairs if a == number]
        found = set()
        for each in (*on_stream[-1:], *elsewhere):
            found |= {each} | behind[each]
        behind.append(found)
        assert set(others) <= found
    return behind


@pytest.mark.parametrize("seed", range(6))
def test_launches_that_share_memory_wait_for_one_another(seed):
    outputs, fed = random_step(seed)
    kinds = {v: (np.shape(value), FLOAT32) for v, value in fed.items()}
    order = autodiff.find_topo_sort(outputs)
    made = program.Program(order, outputs, kinds, GPU, passes=(fuse,))
    behind = all_behind(made.instructions, made._memory_of)
    for number, each in enumerate(made.instructions):
        own = {made._memory_of(view.buffer) for view in each.written}
        for other in range(number):
            touched = {made._memory_of(view.buffer) for view in made.instructions[other].operands}
            if any(a[0] == b[0] and a[1] < b[2] and b[1] < a[2] for a in own for b in touched):
                assert other in behind[number]


@pytest.mark.parametrize("flips", ["", "a", "b", "ab"])
def test_tensor_cores_multiply_what_is_rounded_to_tf32(flips):
    """11 bits of each operand; the sum, the bias and the sums of columns are float32."""
    for m, n, k in SIZES:
        a, b, bias = numbers((m, k), (k, n), (n,))
        x, y, z = (ops.variable(name) for name in "xyz")
        fed = {x: a.T if "a" in flips else a, y: b.T if "b" in flips else b, z: bias}
        left, right = (x.T if "a" in flips else x), (y.T if "b" in flips else y)
        outputs = [ops.relu(left @ right + z)]
        (found,), made = run(outputs, fed, GPU, (with_tf32, *PASSES), FLOAT32)
        wanted = np.maximum(rounded(a).astype(float) @ rounded(b) + bias, 0)
        bound = 1e-6 * (1 + np.abs(a).astype(float) @ np.abs(b)).max()
        np.testing.assert_allclose(found, wanted, rtol=0, atol=bound, err_msg=str((m, n, k)))
        assert [each.tf32 for each in made.instructions] == [True]


def rounded(x):
    """To the nearest number of TF32, halves away from 0."""
    words = np.ascontiguousarray(x).view(np.uint32)
    return ((words + 0x1000) & 0xFFFFE000).view(np.float32)


def test_sums_of_columns_are_not_rounded_with_the_product():
    images, grads, bias = numbers((300, 33), (300, 20), (20,))
    x, g, b = (ops.variable(name) for name in "xgb")
    news = [b - ops.sum(g, 0), x.T @ g * 0.5]
    passes = (with_tf32, *PASSES)
    (sums, product), made = run(news, {x: images, g: grads, b: bias}, GPU, passes, FLOAT32)
    assert any(isinstance(each, Gemm) and each.sums for each in made.instructions)
    np.testing.assert_allclose(sums, bias - grads.sum(0, dtype=float), rtol=0, atol=1e-4)
    wanted = 0.5 * (rounded(images).T.astype(float) @ rounded(grads))
    np.testing.assert_allclose(product, wanted, rtol=0, atol=1e-4)


@pytest.mark.parametrize("goes_on", [False, True])
def test_sums_of_columns_lie_where_they_belong_whether_or_not_the_product_goes_on(goes_on):
    """Of a product that nothing follows the strides were told twice, and sums went elsewhere."""
    images, grads, bias = numbers((30, 33), (30, 20), (20,))
    x, g, b = (ops.variable(name) for name in "xgb")
    product = x.T @ g * 0.5 if goes_on else x.T @ g
    news = [product, b * 0.9 + ops.sum(g, 0), b - (b * 0.9 + ops.sum(g, 0)) * 0.1]
    (found, moved, new), made = run(news, {x: images, g: grads, b: bias}, GPU, PASSES, FLOAT32)
    assert any(isinstance(each, Gemm) and each.sums for each in made.instructions)
    wanted = bias * 0.9 + grads.sum(0, dtype=float)
    np.testing.assert_allclose(moved, wanted, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(new, bias - wanted * 0.1, rtol=1e-5, atol=1e-5)
    scale = 0.5 if goes_on else 1
    np.testing.assert_allclose(found, scale * (images.T.astype(float) @ grads), atol=1e-4)


@pytest.mark.parametrize("flips", list(itertools.product((False, True), repeat=2)))
def test_a_large_product_turns_what_lies_along_k(flips, monkeypatch):
    """The tile of large products, on sizes that it does not divide."""
    monkeypatch.setattr(gemm, "_choice", lambda *shape: (gemm._LARGE, 2))
    a, b = numbers((130, 70), (70, 260))
    x, y = ops.variable("x"), ops.variable("y")
    fed = {x: a.T if flips[0] else a, y: b.T if flips[1] else b}
    outputs = [ops.relu((x.T if flips[0] else x) @ (y.T if flips[1] else y))]
    (found,), made = run(outputs, fed, GPU, PASSES, FLOAT32)
    assert [each.tile for each in made.instructions] == [gemm._LARGE]
    np.testing.assert_allclose(found, np.maximum(a.astype(float) @ b, 0), atol=1e-4)
