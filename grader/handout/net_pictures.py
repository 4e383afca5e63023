"""Pictures of conv nets: im2col, receptive fields, and what training keeps in memory."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import NamedTuple

from grader.handout.svg import Drawing

#: The picture of im2col: an image, a filter on it.
IMAGE = ((1, 2, 0, 1), (0, 1, 3, 2), (2, 0, 1, 1))
FILTER = ((1, 2), (0, -1))
#: Which window stands out.
_WINDOW = 4
#: (kernel, stride) of each layer of the two panels of receptive fields.
PANELS = (((3, 1), (3, 1), (3, 1)), ((3, 2), (3, 1), (3, 1)))
#: ResNet-20 on 32 x 32 images: filters of its stages, blocks of each, images of a batch.
STAGES, BLOCKS, BATCH, SIDE = (16, 32, 64), 3, 128, 32


def windows() -> list[list[int]]:
    """The windows of the image, row by row: each the elements under the filter."""
    rows, columns = len(FILTER), len(FILTER[0])
    return [
        [IMAGE[y + i][x + j] for i in range(rows) for j in range(columns)]
        for y in range(len(IMAGE) - rows + 1)
        for x in range(len(IMAGE[0]) - columns + 1)
    ]


def products() -> list[int]:
    """The filter times each window."""
    weights = [weight for row in FILTER for weight in row]
    return [sum(w * x for w, x in zip(weights, each, strict=True)) for each in windows()]


def im2col() -> Drawing:
    """An image and its windows as the columns of a matrix, which a filter is multiplied with."""
    cell, seen = 32.0, windows()
    across = len(IMAGE[0]) - len(FILTER[0]) + 1
    picture = Drawing(620, 306)
    _grid(picture, (10, 34), [list(row) for row in IMAGE], cell, "cell")
    picture.text(10 + 2 * cell, 24, "image, 3 x 4", "small")
    y, x = divmod(_WINDOW, across)
    for i, j in ((i, j) for i in range(2) for j in range(2)):
        place = 10 + (x + j) * cell, 34 + (y + i) * cell
        picture.rect(*place, cell, cell, "amber")
        picture.label(place[0] + cell / 2, place[1] + cell / 2, f"{IMAGE[y + i][x + j]}")
    picture.rect(10 + x * cell, 34 + y * cell, 2 * cell, 2 * cell, "frame")
    left, top, width = 330.0, 34.0, 46.0
    picture.text(left + len(seen) * width / 2, 24, "its windows as columns, 4 x 6", "small")
    _columns(picture, left, top, width, cell)
    picture.arrow([(10 + 4 * cell + 12, 34 + 1.5 * cell), (left - 14, 34 + 1.5 * cell)])
    picture.text(232, 34 + 1.5 * cell - 10, "im2col", "mono")
    below = top + 4 * cell + 70
    _grid(picture, (50, below), [[w for row in FILTER for w in row]], 36, "blue")
    picture.text(50 + 72, below - 10, "filter 2 x 2, as a row", "small")
    picture.label(260, below + 18, "times the columns =", "small")
    for number, value in enumerate(products()):
        kind = "amber" if number == _WINDOW else "green"
        picture.rect(left + number * width, below, width, 36, kind)
        picture.label(left + (number + 0.5) * width, below + 18, f"{value}")
    picture.text(left + 2 * width, below - 10, "result, 2 x 3, row by row", "small")
    at = left + (_WINDOW + 0.5) * width
    picture.arrow([(at, top + 4 * cell + 4), (at, below - 4)])
    picture.text(10, 296, "An element stands in as many columns as there are windows that see it: "
                 "of an inner one, 4.", "tiny soft", "start")  # fmt: skip
    return picture


def _columns(picture: Drawing, left: float, top: float, width: float, cell: float) -> None:
    for number, window in enumerate(windows()):
        for row, value in enumerate(window):
            place = left + number * width, top + row * cell
            picture.rect(*place, width, cell, "amber" if number == _WINDOW else "cell")
            picture.label(place[0] + width / 2, place[1] + cell / 2, f"{value}")


def _grid(
    picture: Drawing, at: tuple[float, float], rows: list[list[int]], cell: float, kind: str
) -> None:
    for y, row in enumerate(rows):
        for x, value in enumerate(row):
            place = at[0] + x * cell, at[1] + y * cell
            picture.rect(*place, cell, cell, kind)
            picture.label(place[0] + cell / 2, place[1] + cell / 2, f"{value}")


# --- receptive fields ---------------------------------------------------------------------------


def receptive_fields(layers: tuple[tuple[int, int], ...]) -> list[int]:
    """How many elements along a side an element sees: of the last layer's result itself, of what
    that layer reads, and so on down to the image."""
    found = [1]
    for kernel, stride in reversed(layers):
        found.append((found[-1] - 1) * stride + kernel)
    return found


def receptive() -> Drawing:
    """What one element of the third layer sees of each layer before, without and with a stride."""
    cell, gap, count = 14.0, 52.0, 15
    width = count * cell
    picture = Drawing(2 * width + 214, 4 * gap + 6)
    for panel, layers in enumerate(PANELS):
        left = 62 + panel * (width + 76)
        first = layers[0][1]
        words = "each layer 3 wide, stride 1" if first == 1 else "the first one with stride 2"
        picture.text(left + width / 2, 14, words, "small bold")
        fields = receptive_fields(layers)
        middles = []
        for row, field in enumerate(fields):
            y = 26 + row * gap
            step = first if row < len(fields) - 1 else 1
            middles.append((left + width / 2, y))
            _row(picture, (left, y), (cell * step, width), field)
            if not panel:
                name = "image" if row == len(layers) else f"layer {len(layers) - row}"
                picture.text(left - 12, y + 17, name, "small", "end")
            seen = f"sees {field}" if row else "1 element"
            picture.text(left + width + 8, y + 16, seen, "small", "start")
        _fans(picture, middles, fields, cell, first)
    return picture


def _row(picture: Drawing, at: tuple[float, float], size: tuple[float, float], field: int) -> None:
    """The elements of a layer, those that are seen in amber. The middle one lies in the middle."""
    cell, width = size
    beside = int((width / cell - 1) // 2)
    for number in range(-beside, beside + 1):
        x = at[0] + width / 2 + (number - 0.5) * cell
        kind = "amber" if abs(number) <= field // 2 else "cell"
        picture.rect(x, at[1], cell, 24, kind)


def _fans(
    picture: Drawing,
    middles: list[tuple[float, float]],
    fields: list[int],
    cell: float,
    stride: int,
) -> None:
    """Lines from the ends of what is seen of a layer to the ends in the one below."""
    for row, (field, below) in enumerate(pairwise(fields)):
        (x, y), (_, under) = middles[row], middles[row + 1]
        mine = cell * stride * field / 2
        theirs = cell * (stride if row + 2 < len(fields) else 1) * below / 2
        for side in (-1, 1):
            picture.path([(x + side * mine, y + 24), (x + side * theirs, under)], "dash")


# --- memory -------------------------------------------------------------------------------------


class Kept(NamedTuple):
    """What training keeps of a part of the net, bytes of float32.

    Attributes:
        part: its name.
        normed: results of convolutions, which the gradient of a norm reads.
        passed: results of relu, which those of relu itself and of the next convolution read.
    """

    part: str
    normed: int
    passed: int


def kept_of_training() -> list[Kept]:
    """What each part of ResNet-20 leaves in memory, from the first to the last."""
    found, side = [], SIDE
    for stage, filters in enumerate(STAGES):
        side = SIDE >> stage
        one = BATCH * filters * side * side * 4
        found += [Kept("stem", one, one)] if stage == 0 else []
        for block in range(BLOCKS):
            changes = stage > 0 and block == 0
            found.append(Kept(f"{stage + 1}.{block}", (3 if changes else 2) * one, 2 * one))
    return found


def residual_memory() -> Drawing:
    """How memory fills in the way forward, and empties in the way back."""
    parts = kept_of_training()
    left, bottom, top, bar = 52.0, 226.0, 40.0, 28.0
    totals = list(accumulate(each.normed + each.passed for each in parts))
    normed = list(accumulate(each.normed for each in parts))
    height = (bottom - top) / 200e6
    picture = Drawing(left + 2 * len(parts) * bar + 14, 284)
    for megabytes in (0, 50, 100, 150, 200):
        y = bottom - megabytes * 1e6 * height
        picture.path([(left, y), (picture.width - 8, y)], "thin")
        picture.text(left - 6, y + 4, f"{megabytes}", "tiny soft", "end")
    picture.text(left - 40, top - 24, "MB that are kept", "small", "start")
    order = [*range(len(parts)), *reversed(range(len(parts)))]
    for column, part in enumerate(order):
        x, y = left + column * bar + 2, bottom - normed[part] * height
        picture.rect(x, y, bar - 4, normed[part] * height, "blue")
        passed = (totals[part] - normed[part]) * height
        picture.rect(x, y - passed, bar - 4, passed, "amber")
        picture.text(x + bar / 2 - 2, bottom + 15, parts[part].part, "tiny")
    half = left + len(parts) * bar
    picture.path([(half, top - 8), (half, bottom + 20)], "dash")
    picture.text((left + half) / 2, bottom + 34, "forward →", "small")
    picture.text((picture.width - 8 + half) / 2, bottom + 34, "backward →", "small")
    for x, kind, words in (
        (left, "blue", "results of convolutions: norms read them"),
        (left + 300, "amber", "results of relu: convolutions read them"),
    ):
        picture.rect(x, 268, 12, 12, kind)
        picture.text(x + 18, 278, words, "tiny", "start")
    return picture
