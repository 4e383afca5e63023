"""Windows that slide over images: where each lies.

    x = N C H W      windows of x = N C KH KW OH OW, a view of x with a border

Window (oh, ow) has at (i, j) the element (oh * stride - padding + i * dilation, ...) of the image.
"""

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class Windows:
    """The windows of images of one size; each field is a pair, of height and width.

    With `ceil`, a window may reach beyond the border behind, if it starts before that.
    """

    size: tuple
    kernel: tuple
    stride: tuple = (1, 1)
    padding: tuple = (0, 0)
    dilation: tuple = (1, 1)
    ceil: bool = False

    def __post_init__(self):
        if min(self.out) < 1:
            raise ValueError(
                "windows of %s, %s apart, don't fit into images of %s with a border of %s"
                % (self.kernel, self.dilation, self.size, self.padding)
            )

    @property
    def out(self):
        """How many windows there are down and across."""
        return tuple(map(self._count, *self._fields()))

    def _fields(self):
        return self.size, self.kernel, self.stride, self.padding, self.dilation

    def _count(self, size, kernel, stride, padding, dilation):
        """How many windows there are along one side; 0 if not even one fits.

        Args:
            size, kernel, stride, padding, dilation: along this side, numbers.
        """
        reach, found = (kernel - 1) * dilation, 0
        for first in range(-padding, size + padding, stride):
            last = first + reach
            if last >= size + padding and not (self.ceil and found and first < size):
                break
            found += 1
            if last >= size + padding - 1:
                break
        return found

    @property
    def borders(self):
        """(before, after) of height and of width: what all windows together need."""
        found = []
        for size, kernel, stride, padding, dilation, out in zip(*self._fields(), self.out):
            end = (out - 1) * stride + (kernel - 1) * dilation + 1
            found.append((padding, max(0, end - size - padding)))
        return tuple(found)

    def seen(self, bordered):
        """The windows (N, C, KH, KW, OH, OW) of images with borders, a view.

        Args:
            bordered: images (N, C, H, W) with the borders that `borders` says. Back ends ask for
                the view alone, of an array of these strides that has no elements.
        """
        extent = [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilation)]
        everywhere = np.lib.stride_tricks.sliding_window_view(bordered, extent, (2, 3))
        (sh, sw), (dh, dw) = self.stride, self.dilation
        windows = everywhere[:, :, ::sh, ::sw, ::dh, ::dw]
        windows = windows[:, :, : self.out[0], : self.out[1]]
        return np.moveaxis(windows, (4, 5), (2, 3))

    def bordered(self, x, value=0):
        """Images with borders of a value, a numpy array."""
        return np.pad(x, ((0, 0), (0, 0), *self.borders), constant_values=value)

    def folded(self, columns):
        """For each element of the images (N, C, H, W), the sum of what windows have of it.

        Args:
            columns: an element for each of the windows, (N, C, KH, KW, OH, OW).
        """
        images, channels = columns.shape[:2]
        sides = [
            np.arange(out) * stride + np.arange(kernel)[:, None] * dilation - padding
            for out, stride, kernel, dilation, padding in zip(
                self.out, self.stride, self.kernel, self.dilation, self.padding
            )
        ]
        rows, across = sides[0][:, None, :, None], sides[1][None, :, None, :]
        rows, across = np.broadcast_arrays(rows, across)
        inside = (rows >= 0) & (rows < self.size[0]) & (across >= 0) & (across < self.size[1])
        places = (rows * self.size[1] + across)[inside]
        found = np.zeros((images, channels, self.size[0] * self.size[1]), columns.dtype)
        np.add.at(found, (slice(None), slice(None), places), columns[:, :, inside])
        return found.reshape(images, channels, *self.size)

    def counts(self, with_border):
        """How many elements each window has, (OH, OW): of images with their padding, or without."""
        found = []
        for size, kernel, stride, padding, dilation, out in zip(*self._fields(), self.out):
            at = np.arange(out)[:, None] * stride + np.arange(kernel) * dilation - padding
            first, end = (-padding, size + padding) if with_border else (0, size)
            found.append(((at >= first) & (at < end)).sum(1))
        return np.multiply.outer(*found)

    def numbers(self):
        """All that a kernel is told, behind the numbers of images and channels."""
        return (
            *self.size, *self.kernel, *self.out, *self.stride, *self.padding, *self.dilation
        )  # fmt: skip
