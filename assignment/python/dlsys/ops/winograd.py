"""Convolutions of 3 x 3 with fewer multiplications, on a back end (Lavin and Gray, 2016).

A tile of m x m results needs (m + 2) ** 2 products instead of 9 * m * m, between transforms that
add alone: y = A' [(G w G') * (B' x B)] A. Each transform is a product with a matrix that is known,
and what stands in brackets is a product over channels for each place of a tile.
"""

import numpy as np

from dlsys.backend.windows import Windows

#: m -> (B', G, A'). Larger tiles save more products, and lose more digits.
_MATRICES = {
    2: (
        [[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]],
        [[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]],
        [[1, 1, 1, 0], [0, 1, -1, -1]],
    ),
    4: (
        [
            [4, 0, -5, 0, 1, 0], [0, -4, -4, 1, 1, 0], [0, 4, -4, -1, 1, 0],
            [0, -2, -1, 2, 1, 0], [0, 2, -1, -2, 1, 0], [0, 4, 0, -5, 0, 1],
        ],
        [
            [1 / 4, 0, 0], [-1 / 6, -1 / 6, -1 / 6], [-1 / 6, 1 / 6, -1 / 6],
            [1 / 24, 1 / 12, 1 / 6], [1 / 24, -1 / 12, 1 / 6], [0, 0, 1],
        ],
        [[1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 1]],
    ),
}  # fmt: skip

#: Method -> m.
TILES = {"winograd2": 2, "winograd4": 4}


def check(windows, groups):
    """Raises a ValueError unless the method knows such a convolution."""
    said = (windows.kernel, windows.stride, windows.dilation, groups)
    if said != ((3, 3), (1, 1), (1, 1), 1) or max(windows.padding) > 2:
        raise ValueError(
            "Winograd's method takes kernels of 3 x 3, stride, dilation and groups of 1, and a "
            'padding of 2 at most; hint: method="auto"'
        )


def convolved(build, x, w, padding, m):
    """The convolution of x (N, C, H, W) with w (F, C, 3, 3), a view of (N, F, OH, OW).

    Args:
        build: the Lowering.
        padding: of height and width.
        m: the side of a tile's results.
    """
    of_data, of_weights, of_results = (np.array(each) for each in _MATRICES[m])
    (images, channels), filters = x.shape[:2], w.shape[0]
    out = [extent + 2 * p - 2 for extent, p in zip(x.shape[2:], padding)]
    tiles = [-(-extent // m) for extent in out]
    places, count = (m + 2) ** 2, images * tiles[0] * tiles[1]
    data = _places_first(build, _tiles(build, x, padding, m, tiles), (2, 3, 1, 0, 4, 5))
    data = build.product(_both(build, of_data), data)
    weights = build.product(_both(build, of_weights), _places_first(build, w, (2, 3, 0, 1)))
    by_place = build.product(
        build.reshape(weights, (places, filters, channels)),
        build.reshape(data, (places, channels, count)),
    )
    found = build.product(
        _both(build, of_results), build.reshape(by_place, (places, filters * count))
    )
    found = build.reshape(found, (m, m, filters, images, *tiles))
    found = build.view(lambda array: np.transpose(array, (3, 2, 4, 0, 5, 1)), found)
    found = build.reshape(found, (images, filters, tiles[0] * m, tiles[1] * m))
    return build.view(lambda array: array[:, :, : out[0], : out[1]], found)


def gradient_of_data(build, w, g, padding, m):
    """The gradient of x: a convolution, of g with the weights turned round."""
    turned = build.view(lambda array: np.swapaxes(array[:, :, ::-1, ::-1], 0, 1), w)
    return convolved(build, g, turned, tuple(2 - p for p in padding), m)


def _tiles(build, x, padding, m, tiles):
    """Overlapping tiles of x, a view (N, C, m + 2, m + 2, tiles down, tiles across)."""
    # So large that the last tiles fit, with the same border before.
    size = tuple(count * m + 2 - 2 * p for count, p in zip(tiles, padding))
    return build.windows(widened(build, x, size), Windows(size, (m + 2, m + 2), (m, m), padding))


def widened(build, x, size):
    """Images (N, C, H, W) of this height and width at least, zeros behind."""
    if x.shape[2:] == size:
        return x
    found = build.elementwise("p0", shape=(*x.shape[:2], *size), numbers=(0,))
    inside = (slice(None), slice(None), slice(0, x.shape[2]), slice(0, x.shape[3]))
    build.elementwise("a", x, into=build.part(found, inside))
    return found


def _places_first(build, x, axes):
    """x with its places as rows: (places, the rest)."""
    moved = build.view(lambda array: np.transpose(array, axes), x)
    return build.reshape(moved, (moved.shape[0] * moved.shape[1], int(np.prod(moved.shape[2:]))))


def _both(build, matrix):
    """What transforms both axes of a tile that is one row: a matrix in memory."""
    return build.constant(np.kron(matrix, matrix))
