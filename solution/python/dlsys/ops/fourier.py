"""Convolutions as products of spectra, tile by tile, on a back end; for kernels of any size.

    y = R' [(W w) * (X x)]       a tile of t x t elements of x gives m x m of y, t = m + kernel - 1

X is the discrete Fourier transform, W its conjugate, R' goes back, and * is a product over channels
at each frequency. It costs about 2 (t / m) ** 2 products for each result and pair of channels,
where other methods have kernel ** 2. A transform of some tens of elements is a product with a
matrix: along rows first, where half of the frequencies are enough, then along columns. A complex
number lies as two real ones. All is linear, so that gradients are the same steps, turned round.
"""

import numpy as np

from dlsys.backend.windows import Windows
from dlsys.dtypes import FLOAT32, FLOAT64, promoted

from .winograd import widened

#: The side of a tile: a power of two from 8 on, and so many times what it shares with the next.
_LEAST_SIDE, _LEAST_RATIO = 8, 5


def check(windows, groups):
    """Raises a ValueError unless the method knows such a convolution."""
    if windows.stride != (1, 1) or groups != 1:
        raise ValueError('method "fft" takes a stride and groups of 1; hint: method="auto"')


class Spectra:
    """What the tiles of one convolution become."""

    def __init__(self, build, windows, *operands):
        """
        Args:
            build: the Lowering.
            windows: the Windows of the convolution.
            operands: the views of its inputs.

        Raises:
            NotImplementedError: they are neither float32 nor float64.
        """
        self._build, self._windows = build, windows
        dtype = promoted([each.dtype for each in operands])
        if dtype not in (FLOAT32, FLOAT64):
            raise NotImplementedError('method "fft" computes in float32 and float64 alone')
        fields = zip(windows.kernel, windows.dilation, windows.out)
        down, across = sides = [_Side(*each) for each in fields]
        self._frequencies = (across.size // 2 + 1) * down.size
        made, size = (tuple(getattr(s, name) for s in sides) for name in ("made", "size"))
        whole = [-(-out // m) * m for out, m in zip(windows.out, made)]
        reach = [w + t - m - 2 * p for w, t, m, p in zip(whole, size, made, windows.padding)]
        self._tiles_of_images = Windows(tuple(reach), size, made, windows.padding)
        self._tiles_of_results = Windows(tuple(whole), made, made)
        self._images, self._results, self._filters = (
            tuple(build.known(each.astype(dtype)) for each in pair)
            for pair in zip(across.along_rows(), down.along_columns())
        )

    def value(self, x, w):
        """The convolution of x (N, C, H, W) with w (F, C, KH, KW): (N, F, OH, OW)."""
        found = self._build.product(self._of_filters(w), self._of(x, self._images))
        return self._images_of(found, self._results, x.shape[0], self._windows.out)

    def gradient_of_data(self, w, g):
        """The gradient of sum(g * value) for x, (N, C, H, W)."""
        found = self._build.product(self._turned(self._of_filters(w)), self._of(g, self._results))
        return self._images_of(found, self._images, g.shape[0], self._windows.size)

    def gradient_of_weights(self, x, g):
        """The gradient of sum(g * value) for w, (F, C, KH, KW)."""
        build, (filters, channels) = self._build, (g.shape[1], x.shape[1])
        seen = self._turned(self._of(x, self._images))
        found = build.product(self._of(g, self._results), seen)
        found = build.reshape(found, (found.shape[0], 2, filters, 2, channels))
        found = build.view(_blocks_exchanged, found)
        found = self._back(found, self._filters, filters * channels)
        found = build.reshape(found, (*self._windows.kernel[::-1], filters, channels))
        return build.view(lambda array: np.transpose(array, (2, 3, 1, 0)), found)

    def _tiles(self, pair):
        return self._tiles_of_images if pair is self._images else self._tiles_of_results

    def _of(self, x, pair):
        """The spectra of the tiles of x (N, C, H, W): (frequencies, 2 C, N * tiles)."""
        build, tiles, channels = self._build, self._tiles(pair), x.shape[1]
        seen = build.windows(widened(build, x, tiles.size), tiles)
        found = self._forth(build.view(_places_first, seen), pair)
        return build.reshape(found, (self._frequencies, 2 * channels, found.shape[-1] // channels))

    def _images_of(self, spectra, pair, images, size):
        """What tiles of these spectra add up to, cut off to a size; adjoint to `_of`."""
        build, tiles, channels = self._build, self._tiles(pair), spectra.shape[1] // 2
        found = self._back(spectra, pair, channels * images * int(np.prod(tiles.out)))
        found = build.reshape(found, (*tiles.kernel[::-1], channels, images, *tiles.out))
        found = build.fold(build.view(_places_first, found), tiles)
        return build.view(lambda array: array[:, :, : size[0], : size[1]], found)

    def _of_filters(self, w):
        """(frequencies, 2 F, 2 C): what multiplies the real and imaginary parts of images."""
        build, (filters, channels) = self._build, w.shape[:2]
        found = self._forth(build.view(_taps_first, w), self._filters)
        found = build.reshape(found, (self._frequencies, 2, 2, filters, channels))
        found = build.view(_blocks_exchanged, found)
        return build.reshape(found, (found.shape[0], 2 * filters, 2 * channels))

    def _forth(self, places, pair):
        """(across, down, ...) -> (frequencies across, of columns, the rest), by two products."""
        build, (of_rows, of_columns) = self._build, pair
        across, down = places.shape[:2]
        rest = int(np.prod(places.shape[2:]))
        found = build.product(of_rows, build.reshape(places, (across, down * rest)))
        found = build.reshape(found, (of_rows.shape[0] // 2, 2 * down, rest))
        return build.product(of_columns, found)

    def _back(self, spectra, pair, rest):
        """The adjoint of `_forth`: (across, down * rest)."""
        build, (of_rows, of_columns) = self._build, pair
        found = build.reshape(spectra, (of_rows.shape[0] // 2, of_columns.shape[0], rest))
        found = build.product(self._turned(of_columns), found)
        found = build.reshape(found, (of_rows.shape[0], of_columns.shape[1] // 2 * rest))
        return build.product(self._turned(of_rows), found)

    def _turned(self, matrices):
        return self._build.view(lambda array: np.swapaxes(array, -1, -2), matrices)


class _Side:
    """Height or width of tiles.

    Attributes:
        size: elements of an image that a tile reads.
        made: results of it.
    """

    def __init__(self, kernel, dilation, out):
        shared = (kernel - 1) * dilation
        likely = 1 << (max(_LEAST_SIDE, _LEAST_RATIO * shared) - 1).bit_length()
        self.size = min(likely, out + shared)
        self.made = self.size - shared
        self._places = [np.arange(self.size), np.arange(self.made), np.arange(kernel) * dilation]

    def along_rows(self):
        """Matrices of images, results and filters: (frequency, part) by places.

        Real rows have conjugate halves of a spectrum, so that results count most parts twice.
        """
        count = self.size // 2 + 1
        images, results, filters = self._waves(count)
        # Frequency k is that of size - k, too; 0 and the half of the size have no other.
        times = 2 - (2 * np.arange(count) % self.size == 0)
        back = np.repeat(times / self.size, 2)[:, None]
        return _parts(*images), _parts(*results) * back, _parts(*filters, sign=1)

    def along_columns(self):
        """The same of complex columns: (frequency, part) by (part, place); filters have a block."""
        (cos, sin), (cos_made, sin_made), (c, s) = self._waves(self.size)
        return (
            _blocks([cos, sin], [-sin, cos]),
            _blocks([cos_made, sin_made], [-sin_made, cos_made]) / self.size,
            _blocks([c, -s], [-s, -c], [s, c], [c, -s]),
        )

    def _waves(self, count):
        """(cos, sin), (frequencies, places), of the places of images, results and filters."""
        turns = [np.outer(np.arange(count), each) % self.size for each in self._places]
        angles = [2 * np.pi / self.size * each for each in turns]
        return [(np.cos(each), np.sin(each)) for each in angles]


def _parts(cos, sin, sign=-1):
    """(2 frequencies, places): the real part of each wave, and its imaginary one."""
    return np.stack([cos, sign * sin], 1).reshape(-1, cos.shape[1])


def _blocks(*rows):
    """Rows of matrices (frequencies, places) as one, (frequency, row) by (column, place)."""
    found = np.transpose([list(row) for row in rows], (2, 0, 1, 3))
    return found.reshape(found.shape[0] * len(rows), -1)


def _places_first(tiles):
    """(N, C, down, across, ...) -> (across, down, C, N, ...), and back."""
    return np.transpose(tiles, (3, 2, 1, 0, 4, 5))


def _taps_first(filters):
    return np.transpose(filters, (3, 2, 0, 1))


def _blocks_exchanged(found):
    return np.swapaxes(found, 2, 3)
