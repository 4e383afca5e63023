"""Convolutions by wgmma: what hopper.py tells the kernels, on numpy; the kernels where they run."""

import shutil
import subprocess

import numpy as np
import pytest
from test_convolution import GPU, nodes_of
from test_convolution_methods import random_case

from dlsys import autodiff, dtypes, ndarray
from dlsys.backend import gpu, hopper, kernels
from dlsys.backend.hopper import HopperConvolution
from dlsys.backend.view import new_view
from dlsys.backend.windows import Windows
from dlsys.gradcheck import evaluate

KINDS = ("value", "data", "weights")
on_hopper = pytest.mark.skipif(
    hopper.refusal("value", Windows((4, 4), (3, 3)), (1, 1, 1), 1, dtypes.FLOAT32) != "",
    reason="no GPU of compute capability 9.0",
)


def case(seed):
    """Shapes of x and w, and attributes that the method takes."""
    x, w, attributes = random_case(seed)
    return x, (w[0], x[1], *w[2:]), {**attributes, "groups": 1}


def instruction(kind, x, w, attributes, tf32=True):
    """The instruction for some shapes."""
    windows = Windows(x[2:], w[2:], *(attributes[n] for n in ("stride", "padding", "dilation")))
    out = {"value": (x[0], w[0], *windows.out), "data": x, "weights": w}[kind]
    made = HopperConvolution(
        new_view(out, dtypes.FLOAT32), (), kind, windows, (x[0], x[1], w[0])
    )  # fmt: skip
    if tf32:
        made.use_tf32()
    return made


def slots_of(room_a, room_b, of_slice):
    """(of a, of b), as hopper_block.cuh has them."""
    most, whole = 8, hopper.SHARED // (of_slice * room_a + room_b)
    if of_slice == 1:
        return (min(whole, most),) * 2
    beside_all = (hopper.SHARED - of_slice**2 * room_a) // room_b
    has_more = hopper.SHARED - (whole + 1) * room_b >= (of_slice + 2) * room_a
    b = min(beside_all if beside_all >= 2 else max(2, whole + has_more), most)
    return min((hopper.SHARED - b * room_b) // room_a, 2 * most), b


def check_room(shape, stride):
    """That a tile of pixels is one that the copy engine and shared memory take."""
    rows, wide, high, deep, _, group, apart = shape
    halves = 1 if rows == 128 else 2
    tall = halves * high + (group - 1) * apart if group > 1 else high
    assert wide * high * deep <= 256
    assert max(wide, tall) * stride <= 256
    copies, columns = 1 if group > 1 else halves, -(-wide * high * deep // 8) * 8
    of_box = wide * tall * deep if group > 1 else columns
    assert of_box % 8 == 0
    slots = slots_of(rows * hopper.LINE, copies * of_box * hopper.LINE, group)
    assert min(slots) >= 2 and slots[0] >= min(group + 1, 16), shape
    assert hopper.LINE * (slots[0] * rows + slots[1] * copies * of_box) <= hopper.SHARED


def check_room_of_taps(shape):
    """The same for one of weights, of which a slice has highs and lows if they are exact."""
    rows, block, blocks, exact = shape
    room_a, room_b = rows * hopper.LINE, (1 + exact) * (1 if rows == 128 else 2) * block * blocks
    a, b = slots_of(room_a, room_b * hopper.LINE, 1 + exact)
    assert b >= 2 and a >= 2 * (1 + exact)
    assert a * room_a + b * room_b * hopper.LINE <= hopper.SHARED


class Kernel:
    """What a launch does, as hopper.cuh has it: boxes with zeros around tensors, and their
    products."""

    def __init__(self, made, a, b):
        self.of_a, self.of_b = a, b
        self.rows = made._shape[0]
        self.halves = 1 if self.rows == 128 else 2
        self.written = []
        self.tables = [view.buffer.values for view in made._tables]
        self.out = np.zeros((made.parts, *made.output.shape))
        self.wrote = np.zeros(self.out.shape, int)

    @staticmethod
    def box(tensor, first, sizes, steps):
        """A part of a tensor that may reach beyond it."""
        found, rank = tensor, tensor.ndim
        for axis, (start, size, step) in enumerate(zip(first, sizes, steps, strict=True)):
            at, extent = start + step * np.arange(size), tensor.shape[axis]
            inside = ((at >= 0) & (at < extent)).reshape(
                [-1 if i == axis else 1 for i in range(rank)]
            )
            found = np.where(inside, found.take(np.clip(at, 0, extent - 1), axis), 0)
        return found

    def put(self, part, place, value):
        """Writes an element of the result."""
        self.out[(part, *place)] = value
        self.wrote[(part, *place)] += 1


def of_pixels(made, w, x, deep_of=32):
    """The result of OfPixels. w: (taps, lines, depth); x: (images, height, width, depth); of which
    a slice has `deep_of`."""
    rows, wide, high, deep, _, group, apart = made._shape
    images, depth, _, _, lines, _, _, _, _, *steps, tiles, parts, _ = made.sizes[:16]
    (down_in, across_in), (down_out, across_out) = steps[:2], steps[2:]
    run = Kernel(made, w, x)
    phases, taps = run.tables
    copies = 1 if group > 1 else run.halves
    step = run.halves * high if group > 1 else high
    tall = step + (group - 1) * apart if group > 1 else high
    chunks, heights = -(-depth // deep_of), -(-lines // rows)
    assert group == 1 or wide * deep % 8 == 0  # taps lie whole groups of eight lines apart
    assert wide * across_in <= 256 and tall * down_in <= 256
    for number in range(tiles * heights * parts):
        row, tile, part = number % heights, number // heights % tiles, number // heights // tiles
        own = [p for p in phases if p[0] <= tile][-1]
        first, tap, count, at_row, at_column, height, width, across, down = own
        slices = count // group * chunks
        sums = np.zeros((run.halves, rows, wide * high * deep))

        def find(box, across=across, down=down):
            image, h, v = box // across // down, box // across % down, box % across
            return image * deep, h * step, v * wide

        for slice_ in range(part * slices // parts, (part + 1) * slices // parts):
            channel = slice_ % chunks * deep_of
            these = taps[tap + slice_ // chunks * group :][:group]
            boxes = []
            for i in range(copies):
                image, h, v = find((tile - first) * copies + i)
                start = (image, h * down_in + these[0][1], v * across_in + these[0][0], channel)
                sizes, steps = (deep, tall, wide, deep_of), (1, down_in, across_in, 1)
                boxes.append(Kernel.box(x, start, sizes, steps))
            for i, (_, _, matrix, _) in enumerate(these):
                start = (matrix, row * rows, channel)
                weights = Kernel.box(w, start, (1, rows, deep_of), (1, 1, 1))[0]
                for half in range(run.halves):
                    top = i * apart + (half * high if copies < run.halves else 0)
                    pixels = boxes[half if copies > 1 else 0]  # line by line of shared memory
                    if group > 1:  # images are innermost
                        pixels = pixels.transpose(1, 2, 0, 3)
                    pixels = pixels.reshape(-1, deep_of)[top * wide * deep :][: wide * high * deep]
                    sums[half] += weights @ pixels.T
        for half in range(run.halves):
            image, h, v = find((tile - first) * copies + (half if copies > 1 else 0))
            h += half * high if copies < run.halves else 0
            these, some = slice(row * rows, row * rows + rows), min(rows, lines - row * rows)
            for pixel in range(wide * high * deep):
                n = image + (pixel % deep if group > 1 else pixel // (wide * high))
                i = h + (pixel // (deep * wide) if group > 1 else pixel // wide % high)
                j = v + (pixel // deep if group > 1 else pixel) % wide
                if n < images and i < height and j < width:
                    place = at_row + i * down_out, at_column + j * across_out
                    run.put(part, (n, these, *place), sums[half, :some, pixel])
    return run


def of_taps(made, g, x):
    """The result of OfTaps. g: (height, width, images, lines); x: (height, width, images,
    channels)."""
    rows, block, blocks, _ = made._shape
    images, channels, _, _, lines, down, across, count, sh, sw, parts, _ = made.sizes
    run = Kernel(made, g, x)
    (taps,) = run.tables
    of_tap, all_ = -(-channels // block), blocks * run.halves
    chunks, heights = -(-images // 32), -(-lines // rows)
    tiles, slices = -(-count * of_tap // all_), down * across * chunks
    for number in range(tiles * heights * parts):
        row, tile, part = number % heights, number // heights % tiles, number // heights // tiles
        for i in range(all_):
            tap, channel = divmod(tile * all_ + i, of_tap)
            if tap >= count:
                continue
            total = np.zeros((rows, block))
            for slice_ in range(part * slices // parts, (part + 1) * slices // parts):
                window, image = slice_ // chunks, slice_ % chunks * 32
                oh, ow = divmod(window, across)
                start = (oh, ow, image, row * rows)
                of_g = Kernel.box(g, start, (1, 1, 32, rows), (1,) * 4)[0, 0]
                at = (oh * sh + taps[tap][1], ow * sw + taps[tap][0], image, channel * block)
                total += of_g.T @ Kernel.box(x, at, (1, 1, 32, block), (1,) * 4)[0, 0]
            for f, c in np.ndindex(rows, block):
                line, own = row * rows + f, channel * block + c
                if line < lines and own < channels:
                    place = line, own, *divmod(tap, made.windows.kernel[1])
                    run.put(part, place, total[f, c])
    return run


def laid(kind, x, w, g):
    """What the kernels lay of the arrays."""
    if kind == "weights":
        return g.transpose(2, 3, 0, 1), x.transpose(2, 3, 0, 1)
    of_taps_ = w.reshape(*w.shape[:2], -1)
    if kind == "value":
        return of_taps_.transpose(2, 0, 1), x.transpose(0, 2, 3, 1)
    return of_taps_.transpose(2, 1, 0), g.transpose(0, 2, 3, 1)


def some_of(plans):
    """The first, the last, one between, one whose taps are a group, one of three parts or more."""
    least = min(parts for _, parts in plans)
    found = {plans[0], plans[-1], plans[len(plans) // 2], (plans[0][0], max(3, least))}
    return sorted(found | {next((p for p in plans if p[0][5:6] > (1,)), plans[0])})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_tiles_and_taps_make_the_convolution(kind, seed):
    """Each plan that differs in kind: the first, the last, those of several parts and of groups."""
    x, w, attributes = case(seed)
    nodes, feeds = nodes_of(x, w, attributes)
    values = list(feeds.values())
    wanted = evaluate(nodes, feeds)[KINDS.index(kind)]
    made = instruction(kind, x, w, attributes)
    plans = made.likely(1000)
    for plan in some_of(plans):
        made.cut(*plan)
        a, b = laid(kind, *values)
        run = (of_taps if kind == "weights" else of_pixels)(made, a, b)
        assert (run.wrote == 1).all(), plan
        np.testing.assert_allclose(run.out.sum(0), wanted, rtol=1e-9, atol=1e-9)


def test_every_box_is_one_that_the_copy_engine_takes():
    """Of layers of real nets: 256 elements a side, two slices that have room."""
    layers = [(64, 32, 64, 3, 1, 1), (3, 224, 64, 7, 2, 3), (512, 7, 512, 3, 1, 1)]
    layers += [(64, 56, 128, 1, 2, 0), (256, 8, 256, 3, 1, 1), (16, 40, 16, 5, 4, 2)]
    layers += [(3, 257, 4, 3, 1, 1), (3, 1021, 4, 3, 1, 0), (3, 2048, 4, 3, 8, 1)]
    for channels, size, filters, kernel, stride, padding in layers:
        x, w = (64, channels, size, size), (filters, channels, kernel, kernel)
        said = {"stride": (stride,) * 2, "padding": (padding,) * 2, "dilation": (1, 1)}
        for kind in KINDS:
            exact, made = (instruction(kind, x, w, said, tf32) for tf32 in (False, True))
            plans = made.likely(1000) + (exact.likely(1000) if kind == "weights" else [])
            assert plans
            for shape, parts in plans:
                assert parts >= 1 and shape[0] in (64, 128)
                if kind == "weights":
                    assert shape[1] % 8 == 0 and shape[1] * shape[2] <= 256
                    check_room_of_taps(shape)
                    continue
                check_room(shape, stride if kind == "value" else 1)
                assert not shape[4] or shape[1] % 4 == 0  # packs


def test_a_product_of_float32_has_three_parts():
    x, w, attributes = case(1)
    made, exact = (instruction("value", x, w, attributes, tf32) for tf32 in (True, False))
    assert (made.sizes[15], exact.sizes[15]) == (1, 3)
    assert made.question != exact.question
    rooms = [[view.shape[0] for view in each.scratch[:2]] for each in (made, exact)]
    assert rooms[1] == [2 * count for count in rooms[0]]


def test_parts_of_an_exact_result_add_few_products():
    """Some 256 slices' each, but where that were more than 72 parts."""
    windows = Windows((56, 56), (3, 3), padding=(1, 1))
    least = [
        min(parts for _, parts in hopper.plans("weights", windows, (images, 512, 8), products))
        for images, products in ((8, 1), (8, 3), (64, 3))
    ]
    assert least[0] < 37 <= least[1] < 72 == least[2]


def test_what_the_method_refuses_it_says(monkeypatch):
    windows = Windows((9, 9), (3, 3))
    said = "value", windows, (1, 1, 1), 1, dtypes.FLOAT32
    monkeypatch.setattr(hopper, "capability", lambda: (8, 0))
    assert "needs a GPU of compute capability 9.0" in hopper.refusal(*said)
    monkeypatch.setattr(hopper, "capability", lambda: (9, 0))
    monkeypatch.setattr(hopper, "is_emulated", lambda: True)
    assert "needs a GPU" in hopper.refusal(*said)
    monkeypatch.setattr(hopper, "is_emulated", lambda: False)
    assert hopper.refusal(*said) == ""

    def refusal(windows=windows, channels=(1, 1, 1), groups=1, dtype=dtypes.FLOAT32, kind="value"):
        return hopper.refusal(kind, windows, channels, groups, dtype)

    assert "not in float64" in refusal(dtype=dtypes.FLOAT64)
    assert "one group" in refusal(channels=(1, 2, 2), groups=2)
    assert refusal(Windows((9, 9), (3, 3), (1, 2))) == ""
    assert "strides of at most 8" in refusal(Windows((40, 40), (3, 3), (1, 9)))
    assert "at most 384 elements" in refusal(Windows((40, 40), (20, 20)))
    assert "65535" in refusal(channels=(1, 1, 1 << 16))
    assert "1 to 65535" in refusal(Windows((4, 4), (0, 3)))
    large, few = Windows((512, 512), (3, 3)), (1, 64, 64)
    assert refusal(large, few) == refusal(large, (32, 64, 8), kind="weights") == ""
    assert "would lay 9 images" in refusal(large, (9, 64, 64), kind="weights")
    assert "would lay 1 images as 32, in 8.6 GB" in refusal(large, few, kind="weights")


def test_the_emulated_gpu_refuses_the_method():
    nodes, feeds = nodes_of((1, 2, 4, 4), (2, 2, 3, 3), {"method": "wgmma"})
    fed = {n: ndarray.array(v, GPU, dtypes.FLOAT32) for n, v in feeds.items()}
    if hopper.refusal("value", Windows((4, 4), (3, 3)), (1, 2, 2), 1, dtypes.FLOAT32) == "":
        pytest.skip("this GPU has it")
    with pytest.raises(NotImplementedError, match='"wgmma" needs a GPU of compute'):
        autodiff.Executor(nodes, ctx=GPU).run(fed)


@pytest.mark.skipif(not shutil.which("nvcc"), reason="no nvcc here")
def test_the_kernels_compile(tmp_path, monkeypatch):
    monkeypatch.setattr(gpu, "HEADERS", ("hopper.cuh",))
    tiles = ((64, 32, 8, 1, 1, 3, 1), (128, 64, 3, 1), (64, 8, 5, 0))
    keys = [("hopper", len(tile) == 4, tile) for tile in tiles]
    source = tmp_path / "kernels.cu"
    source.write_text(kernels.text_of(gpu, {f"k{i}": key for i, key in enumerate(keys)}))
    command = [
        "nvcc",
        "-std=c++17",
        "-gencode=arch=compute_90a,code=sm_90a",
        "-Werror=all-warnings",
    ]
    command += [f"-I{kernels._SOURCES}", "-c", source, "-o", tmp_path / "kernels.o"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
