"""Convolutions by wgmma of images whose channels lie last: what the kernels are told, on numpy; and
the kernels where they run."""

import itertools
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from test_convolution import GPU, nodes_of
from test_hopper import KINDS, Kernel, case, check_room, laid, of_pixels, some_of

from dlsys import autodiff, dtypes, ndarray, ops
from dlsys.backend import choosing, cpu, gpu, hopper, hopper_last, kernels, program
from dlsys.backend.hopper_last import LastConvolution, LayWeights, lay_together
from dlsys.backend.instructions import Elementwise
from dlsys.backend.lowering import Lowering
from dlsys.backend.view import new_view
from dlsys.backend.windows import Windows
from dlsys.gradcheck import evaluate

DEVICES = {"cpu": ndarray.cpu(0), "gpu": GPU}
NUMBERS = (dtypes.BFLOAT16, dtypes.FLOAT32)


def instruction(kind, x, w, attributes, dtype=dtypes.BFLOAT16):
    """The instruction for some shapes."""
    windows = Windows(x[2:], w[2:], *(attributes[n] for n in ("stride", "padding", "dilation")))
    out = {"value": (x[0], w[0], *windows.out), "data": x, "weights": w}[kind]
    return LastConvolution(new_view(out, dtype), (), kind, windows, (x[0], x[1], w[0]), dtype=dtype)


def of_taps(made, g, x):
    """The result of Taps, line by line of shared memory. g: (images, height, width, lines);
    x: (images, height, width, channels)."""
    rows, wide, high, deep, blocks, group, apart = made._shape
    images, channels, _, _, lines, height, width, count, sh, sw, parts = made.sizes[:11]
    of_line, packs = 128 // made.dtype.itemsize, 32 // made.dtype.itemsize
    run = Kernel(made, g, x)
    (taps,) = run.tables
    of_tap, all_ = -(-channels // of_line), blocks * run.halves
    across, down = -(-width // wide), -(-height // high)
    tall, whole = high + (group - 1) * apart, -(-wide * high * deep // packs) * packs
    below = apart * wide * deep
    slices = across * down * -(-images // deep)
    heights = -(-lines // rows)
    tiles = -(-(count // group * of_tap) // all_)
    assert group == 1 or count % group == 0
    if group > 1 and made.dtype == dtypes.BFLOAT16:
        assert below % 8 == 0 and blocks == 1

    def as_lines(box, most):
        if group > 1:  # images are innermost
            box = box.transpose(1, 2, 0, 3)
        found = np.zeros((most, of_line))
        found[: box[..., 0].size] = box.reshape(-1, of_line)
        return found

    for number in range(tiles * heights * parts):
        row, tile, part = number % heights, number // heights % tiles, number // heights // tiles
        for block in range(rows // of_line):
            for i in range(all_):
                own = tile * all_ + i
                if own >= count // group * of_tap:
                    continue
                first, channel = own // of_tap * group, own % of_tap * of_line
                total = np.zeros((group, of_line, of_line))
                for slice_ in range(part * slices // parts, (part + 1) * slices // parts):
                    column, rest = slice_ % across * wide, slice_ // across
                    at, image = rest % down * high, rest // down * deep
                    start = (image, at, column, row * rows + block * of_line)
                    of_g = Kernel.box(g, start, (deep, high, wide, of_line), (1,) * 4)
                    start = (image, at * sh + taps[first][1], column * sw + taps[first][0])
                    by = (1, sh, sw, 1)
                    of_x = Kernel.box(x, (*start, channel), (deep, tall, wide, of_line), by)
                    a = as_lines(of_g, whole)
                    b = as_lines(of_x, whole + (group - 1) * below)
                    for tap in range(group):
                        total[tap] += a.T @ b[tap * below : tap * below + whole]
                for tap, f, c in np.ndindex(total.shape):
                    line = row * rows + block * of_line + f
                    if line < lines and channel + c < channels:
                        matrix = divmod(taps[first + tap][2], made.windows.kernel[1])
                        run.put(part, (line, channel + c, *matrix), total[tap, f, c])
    return run


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_tiles_and_taps_make_the_convolution(kind, seed, dtype):
    x, w, attributes = case(seed)
    nodes, feeds = nodes_of(x, w, attributes)
    values = list(feeds.values())
    wanted = evaluate(nodes, feeds)[KINDS.index(kind)]
    made = instruction(kind, x, w, attributes, dtype)
    for plan in some_of(made.likely(1000)):
        made.cut(*plan)
        if kind != "weights":
            run = of_pixels(made, *laid(kind, *values), deep_of=128 // dtype.itemsize)
        else:
            images, g = (values[i].transpose(0, 2, 3, 1) for i in (0, 2))
            run = of_taps(made, g, images)
        assert (run.wrote == 1).all(), plan
        np.testing.assert_allclose(run.out.sum(0), wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_groups_of_taps_are_tried_for_wide_images_and_for_several(dtype):
    """A group is what random small images seldom have."""
    for x in ((2, 64, 16, 16), (6, 64, 4, 4)):
        w = (64, 64, 3, 3)
        said = {"stride": (1, 1), "padding": (1, 1), "dilation": (1, 1)}
        nodes, feeds = nodes_of(x, w, said)
        wanted = evaluate(nodes, feeds)
        blocks = 1 if dtype == dtypes.BFLOAT16 else 2
        for place, kind in enumerate(KINDS):
            made = instruction(kind, x, w, said, dtype)
            wants = [p for p in made.likely(1000) if p[0][5] == 3]
            wants = [p for p in wants if (p[0][3] > 1) == (x[2] == 4)]
            if kind == "weights":
                made.cut(*next(p for p in wants if p[0][4] == blocks))
                of_x, _, g = (each.transpose(0, 2, 3, 1) for each in feeds.values())
                run = of_taps(made, g, of_x)
            else:
                made.cut(*wants[0])
                run = of_pixels(made, *laid(kind, *feeds.values()), deep_of=128 // dtype.itemsize)
            assert (run.wrote == 1).all()
            np.testing.assert_allclose(run.out.sum(0), wanted[place], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_every_box_is_one_that_the_copy_engine_takes(dtype):
    layers = [(64, 32, 64, 3, 1, 1), (8, 224, 64, 7, 2, 3), (512, 7, 512, 3, 1, 1)]
    layers += [(64, 56, 128, 1, 2, 0), (256, 8, 256, 3, 1, 1), (16, 40, 16, 5, 4, 2)]
    for channels, size, filters, kernel, stride, padding in layers:
        x, w = (64, channels, size, size), (filters, channels, kernel, kernel)
        said = {"stride": (stride,) * 2, "padding": (padding,) * 2, "dilation": (1, 1)}
        packs, of_line = 32 // dtype.itemsize, 128 // dtype.itemsize
        for kind in ("value", "data"):
            plans = instruction(kind, x, w, said, dtype).likely(1000)
            assert plans
            for shape, _ in plans:
                check_room(shape, stride if kind == "value" else 1)
        plans = instruction("weights", x, w, said, dtype).likely(1000)
        assert plans
        for shape, _ in plans:
            rows, wide, high, deep, blocks, group, apart = shape
            tall = high + (group - 1) * apart
            assert max(wide, tall) * stride <= 256
            assert of_line * blocks * group <= 256
            whole, boxes = -(-wide * high * deep // packs) * packs, blocks * hopper.boxes_of(rows)
            of_box = -(-(whole + (group - 1) * apart * wide * deep) // 8) * 8
            room = rows // of_line * whole + boxes * of_box
            assert 2 * room * hopper.LINE <= hopper.SHARED


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_images_of_all_sizes_have_a_plan(kind, dtype):
    random = np.random.default_rng(0)
    sides = [(side, side) for side in (4, 31, 60, 64, 67, 100, 128, 131, 224)]
    sides += [tuple(int(side) for side in random.integers(4, 260, 2)) for _ in range(12)]
    for size, filters, kernel, stride in itertools.product(sides, (64, 128), (1, 3), (1, 2)):
        x, w = (8, 64, *size), (filters, 64, kernel, kernel)
        said = {"stride": (stride,) * 2, "padding": (kernel // 2,) * 2, "dilation": (1, 1)}
        assert instruction(kind, x, w, said, dtype).likely(1), (x, w, stride)


@pytest.mark.skipif(not shutil.which("nvcc"), reason="no nvcc here")
def test_the_kernels_compile(tmp_path, monkeypatch):
    monkeypatch.setattr(gpu, "HEADERS", ("numbers.h",))
    keys = [
        ("last", False, (64, 16, 8, 1, 0, 3, 1, "BFloat16"), True),
        ("last", False, (128, 16, 8, 1, 0, 1, 1, "float"), False),
        ("last", False, (64, 16, 14, 1, 0, 3, 1, "float"), True),
        ("last", False, (128, 7, 7, 5, 0, 1, 1, "float"), True),
        ("last", False, (128, 4, 4, 12, 0, 3, 1, "BFloat16"), True),
        ("last", True, (128, 16, 8, 1, 1, 3, 1, "BFloat16"), False),
        ("last", True, (64, 7, 7, 1, 2, 1, 1, "BFloat16"), False),
        ("last", True, (128, 4, 4, 10, 1, 3, 1, "BFloat16"), False),
        ("last", True, (64, 16, 8, 1, 2, 3, 1, "float"), False),
        ("last", True, (128, 7, 7, 1, 8, 1, 1, "float"), False),
    ]
    source = tmp_path / "kernels.cu"
    source.write_text(kernels.text_of(gpu, {f"k{i}": key for i, key in enumerate(keys)}))
    command = ["nvcc", "-std=c++17", "-gencode=arch=compute_90a,code=sm_90a"]
    command += ["-Werror=all-warnings", f"-I{kernels._SOURCES}", "-Xptxas=-v", "-c", source]
    done = subprocess.run([*command, "-o", tmp_path / "k.o"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr.count("Compiling entry") >= len(keys)
    assert "serialized" not in done.stderr  # so ptxas says that one wgmma waits for another
    assert set(re.findall(r"(\d+) bytes spill", done.stderr)) == {"0"}


def test_what_the_kernels_lay_is_where_it_belongs():
    kit, program_ = Path(__file__).resolve().parents[2], Path(__file__).with_name("lays.cu")
    words = [sys.executable, kit / "emulator/emucc.py", f"-I{kit / 'solution/src/backend'}"]
    done = subprocess.run([*words, "--run", program_], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, "0"), done.stderr


def run_on_numpy(instructions, fed):
    """Runs convolutions and simple expressions; fed: view -> values. Returns what sees a view."""
    memory = {view.buffer: values.astype(np.float64).ravel() for view, values in fed.items()}

    def seen(view, shape=None, strides=None):
        size = view.buffer.size // view.dtype.itemsize
        flat = memory.setdefault(view.buffer, np.full(size, np.nan))[view.offset :]
        strides = [8 * each for each in strides or view.strides]
        return np.lib.stride_tricks.as_strided(flat, shape or view.shape, strides)

    for each in instructions:
        output = seen(each.output)
        if isinstance(each, Elementwise):
            names = {f"x{i}": seen(view) for i, view in enumerate(each.inputs)}
            names.update((f"p{i}", number) for i, number in enumerate(each.given))
            output[...] = eval(each.code, names)
            continue
        if isinstance(each, LayWeights):
            for w, to, is_turned in zip(each.inputs, each.outputs, each.turned, strict=True):
                laid_so = seen(w).reshape(*w.shape[:2], -1).transpose(2, 0, 1)
                seen(to)[...] = laid_so.transpose(0, 2, 1) if is_turned else laid_so
            continue
        if not isinstance(each, LastConvolution):
            continue  # the loss
        first, images = each.inputs
        channels, windows = each.channels, each.windows
        count = channels[2 if each.kind == "data" else 1]
        size = windows.out if each.kind == "data" else windows.size
        column, row, image = each.sizes[-4:-1]
        x = seen(images, (channels[0], count, *size), (image, 1, row, column))
        assert not np.isnan(x).any()
        of_x, of_w = (channels[0], channels[1], *windows.size), (*channels[:0:-1], *windows.kernel)
        said = {n: getattr(windows, n) for n in ("stride", "padding", "dilation")}
        nodes, feeds = nodes_of(of_x, of_w, said)
        g, w = np.zeros((channels[0], channels[2], *windows.out)), np.zeros(of_w)
        if each.kind == "weights":
            g = seen(first)
        else:
            order = (2, 1, 0) if each.kind == "data" else (1, 2, 0)
            w = seen(first).transpose(order).reshape(of_w)
        given = {"data": (np.zeros(of_x), w, x)}.get(each.kind, (x, w, g))
        feeds = dict(zip(feeds, given, strict=True))
        found = evaluate(nodes, feeds)[KINDS.index(each.kind)]
        if each.adds:
            output[...] = found
        else:
            for part in np.split(output, each.parts):
                part[...] = found / each.parts
    return seen


def and_sum(instruction):
    is_product = isinstance(instruction, LastConvolution)
    return instruction.and_sum() if is_product else [instruction]


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_images_of_few_channels_are_read_by_rows_of_windows(dtype, monkeypatch):
    """All that is made for a convolution, run on numpy."""
    monkeypatch.setattr(hopper, "is_emulated", lambda: False)
    monkeypatch.setattr(hopper, "capability", lambda: (9, 0))
    by_rows = 0
    stem = (2, 3, 20, 21), (10, 3, 7, 7), {"stride": (2, 2), "padding": (3, 3), "dilation": (1, 1)}
    for x, w, attributes in (stem, *map(case, range(20))):
        nodes, feeds = nodes_of(x, w, {**attributes, "method": "wgmma"})
        fed = {node: (values.shape, dtype) for node, values in feeds.items()}
        order = [node for node in autodiff.find_topo_sort(nodes) if node not in fed]
        made = Lowering(fed, default=dtype, tf32=True).with_nodes(order)
        products = [each for each in made.instructions if isinstance(each, LastConvolution)]
        assert len(products) == 3
        by_rows += sum(each.windows.kernel[1] == 1 < w[3] for each in products)
        given = {made.values[node]: values for node, values in feeds.items()}
        for each in products:
            each.cut(each.likely(1)[0][0], 3)
        in_parts = [part for each in made.instructions for part in and_sum(each)]
        assert len(in_parts) == len(made.instructions) + sum(p.kind != "weights" for p in products)
        seen = run_on_numpy(lay_together(in_parts, ()), given)
        for node, wanted in zip(nodes, evaluate(nodes, feeds), strict=True):
            np.testing.assert_allclose(seen(made.values[node]), wanted, rtol=1e-9, atol=1e-9)
    assert by_rows > 6


def test_products_in_tf32_have_their_channels_last(monkeypatch):
    """Where they may be rounded; in float32 they lie as they did."""
    monkeypatch.setattr(hopper, "is_emulated", lambda: False)
    monkeypatch.setattr(hopper, "capability", lambda: (9, 0))
    x, w, attributes = (2, 6, 8, 8), (10, 6, 3, 3), {"padding": 1, "method": "wgmma"}
    nodes, feeds = nodes_of(x, w, attributes)
    fed = {node: (values.shape, dtypes.FLOAT32) for node, values in feeds.items()}
    order = [node for node in autodiff.find_topo_sort(nodes) if node not in fed]
    for tf32 in (True, False):
        made = Lowering(fed, tf32=tf32).with_nodes(order)
        found = [each for each in made.instructions if hasattr(each, "likely")]
        assert {type(each) for each in found} == {
            LastConvolution if tf32 else hopper.HopperConvolution
        }
        value, data, weights = (made.values[node] for node in nodes)
        assert value.strides[1] == data.strides[1] == (1 if tf32 else 64)
        assert weights.shape == w
    by_kind = {each.kind: each for each in found}
    assert set(by_kind) == set(KINDS)


def test_large_convolutions_that_may_be_rounded_are_left_no_choice(monkeypatch):
    """Others would move all images to and fro; small ones are measured, and so is float32."""
    monkeypatch.setattr(hopper, "is_emulated", lambda: False)
    monkeypatch.setattr(hopper, "capability", lambda: (9, 0))
    node = ops.convolution(ops.variable("x"), ops.variable("w"), padding=1)

    def methods(images, groups=1, tf32=True, dtype=dtypes.FLOAT32):
        node.attributes["groups"] = groups
        shapes = [(images, 64, 32, 32), (64, 64 // groups, 3, 3)]
        return choosing._Trials(program.Program, GPU, tf32, node, shapes, dtype).methods()

    assert methods(128) == ["wgmma"]
    assert {"implicit", "direct", "wgmma"} <= set(methods(images=0))
    assert {"implicit", "wgmma"} <= set(methods(128, tf32=False))
    assert "implicit" in methods(128, groups=2)
    assert methods(1, dtype=dtypes.BFLOAT16) == ["wgmma"]
    assert methods(1, groups=2, dtype=dtypes.BFLOAT16) == [gpu.CONVOLUTION]


def test_channels_are_counted_as_they_are_padded(monkeypatch):
    monkeypatch.setattr(hopper, "is_emulated", lambda: False)
    monkeypatch.setattr(hopper, "capability", lambda: (9, 0))
    windows, channels = Windows((1 << 12, 1 << 12), (3, 3), padding=(1, 1)), (60, 1, 1)
    assert not hopper.refusal("value", windows, channels, 1, dtypes.FLOAT32)
    for dtype in NUMBERS:
        assert "2**30 elements" in hopper_last.refusal("value", windows, channels, 1, dtype)


def test_weights_that_are_there_are_laid_by_one_launch():
    """Not those that are made, nor behind what overwrites them."""
    w = ops.variable("w", (8, 16, 3, 3))
    made = Lowering({w: ((8, 16, 3, 3), dtypes.FLOAT32)})
    first = made.values[w]
    own, other = (new_view(first.shape, dtypes.FLOAT32) for _ in range(2))
    late = made.elementwise("a", first, into=own)
    for view, is_turned in ((first, False), (late, True), (first, True)):
        hopper_last._laid(made, view, dtypes.FLOAT32, is_turned)
    made.elementwise("a", other, into=first)
    hopper_last._laid(made, first, dtypes.BFLOAT16)
    made.laid.clear()
    hopper_last._laid(made, first, dtypes.FLOAT32)
    found = [each for each in lay_together(made.instructions, ()) if isinstance(each, LayWeights)]
    assert [each.turned for each in found] == [(False, True), (True,), (False,), (False,)]
    assert found[0].sizes == (2, 8, 16, 9, 0, 8, 16, 9, 1)
    assert [each.output.dtype for each in found[2:]] == [dtypes.BFLOAT16, dtypes.FLOAT32]


def test_the_copy_engine_reads_images_alone():
    x, w = (2, 8, 8, 8), (8, 8, 3, 3)
    said = {"stride": (1, 1), "padding": (1, 1), "dilation": (1, 1)}
    for dtype in NUMBERS:
        for kind in KINDS:
            made = instruction(kind, x, w, said, dtype)
            made.inputs = "first", "second"
            assert len(made.images) == (2 if kind == "weights" else 1)
            assert made.key[0] == "last"
            assert made.sizes[-4:] == (8, 64, 512, 1)


def test_weights_that_were_rounded_for_a_convolution_are_laid_from_what_they_were():
    w, x = ops.variable("w", (8, 16, 3, 3)), ops.variable("x", (2, 16, 6, 6))
    half = ops.cast(w, "bfloat16")
    fed = {w: ((8, 16, 3, 3), dtypes.FLOAT32), x: ((2, 16, 6, 6), dtypes.BFLOAT16)}
    made = Lowering(fed).with_nodes([half])
    windows, channels = Windows((6, 6), (3, 3), (1, 1), (1, 1)), (2, 16, 8)
    view = hopper_last.convolved(
        made,
        "value",
        (2, 8, 6, 6),
        windows,
        channels,
        dtypes.BFLOAT16,
        made.values[x],
        made.values[half],
    )
    instruction = made.instructions[-1]
    (laid,) = [each for each in made.instructions if isinstance(each, LayWeights)]
    assert laid.inputs[0] is made.values[w]
    assert instruction.inputs[0] is laid.output
    assert view.is_channels_last and view.dtype == dtypes.BFLOAT16
    assert made.before_cast(made.values[x], dtypes.FLOAT32).dtype == dtypes.FLOAT32


def test_images_are_laid_once_for_the_value_and_the_gradient_of_weights(monkeypatch):
    monkeypatch.setattr(hopper, "is_emulated", lambda: False)
    monkeypatch.setattr(hopper, "capability", lambda: (9, 0))
    nodes, feeds = nodes_of((2, 5, 8, 8), (8, 5, 3, 3), {"padding": 1, "method": "wgmma"})
    fed = {node: (values.shape, dtypes.FLOAT32) for node, values in feeds.items()}
    order = [node for node in autodiff.find_topo_sort(nodes) if node not in fed]
    made = Lowering(fed, tf32=True).with_nodes(order)
    value, weights = (each for each in made.instructions if getattr(each, "kind", "") in
                      ("value", "weights"))  # fmt: skip
    assert value.inputs[1] is weights.inputs[1] and value.inputs[1].shape == (2, 8, 8, 8)


def test_channels_that_are_no_packs_get_zeros():
    x, w = ops.variable("x", (2, 10, 6, 6)), ops.variable("w", (10, 10, 3, 3))
    fed = {x: ((2, 10, 6, 6), dtypes.BFLOAT16), w: ((10, 10, 3, 3), dtypes.FLOAT32)}
    made = Lowering(fed)
    windows = Windows((6, 6), (3, 3), (1, 1), (1, 1))
    view = hopper_last.convolved(
        made,
        "value",
        (2, 10, 6, 6),
        windows,
        (2, 10, 10),
        dtypes.BFLOAT16,
        made.values[x],
        made.values[w],
    )
    product = made.instructions[-1]
    assert product.channels == (2, 16, 16)
    assert [each.shape for each in product.inputs] == [(9, 16, 16), (2, 16, 6, 6)]
    assert view.shape == (2, 10, 6, 6)
    assert product.output.shape == (2, 16, 6, 6)


def test_a_processor_has_no_such_method():
    with pytest.raises(NotImplementedError, match="'wgmma' runs on a GPU alone"):
        cpu.source("k", ("last", False, (64, 8, 8, 1, 0, 1, 1, "float")))


def test_images_that_the_copy_engine_cannot_read_are_copied_or_named(monkeypatch):
    x = ops.variable("x", (1, 24, 1, 1))
    made = Lowering({x: ((1, 24, 1, 1), dtypes.BFLOAT16)})
    part = made.values[x].seen(lambda array: array[:, 3:19])
    assert made.channels_last(part, dtypes.BFLOAT16).buffer is not part.buffer
    assert made.channels_last(made.values[x], dtypes.BFLOAT16) is made.values[x]
    monkeypatch.setattr(Elementwise, "images", property(lambda self: self.inputs), raising=False)
    y = ops.variable("y", (5,), np.float32)
    node = ops.relu(y)
    found = program.Program([y, node], [node], {y: ((5,), dtypes.FLOAT32)}, DEVICES["cpu"])
    whole = ndarray.array(np.zeros(6, np.float32), DEVICES["cpu"])
    monkeypatch.setattr(program, "address_of", lambda array: 0x1004)
    with pytest.raises(ValueError, match="the array for y begins at 0x1004; hint: a copy"):
        found.feed({y: whole})
