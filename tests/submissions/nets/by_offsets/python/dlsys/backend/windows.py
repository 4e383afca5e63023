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
        extent = dilation * (kernel - 1) + 1
        room = size + 2 * padding
        if extent > room:
            return 0
        whole, left = divmod(room - extent, stride)
        starts = (whole + 1) * stride
        return whole + 1 + int(self.ceil and left > 0 and starts < size + padding)

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
        down, across = self.out
        rows = slice(0, (down - 1) * self.stride[0] + 1, self.stride[0])
        columns = slice(0, (across - 1) * self.stride[1] + 1, self.stride[1])
        first = bordered[:, :, rows, columns]
        n, c, h, w = bordered.strides
        return np.lib.stride_tricks.as_strided(
            first,
            (*first.shape[:2], *self.kernel, *first.shape[2:]),
            (n, c, h * self.dilation[0], w * self.dilation[1], *first.strides[2:]),
        )

    def bordered(self, x, value=0):
        """Images with borders of a value, a numpy array."""
        return np.pad(x, ((0, 0), (0, 0), *self.borders), constant_values=value)

    def folded(self, columns):
        """For each element of the images (N, C, H, W), the sum of what windows have of it.

        Args:
            columns: an element for each of the windows, (N, C, KH, KW, OH, OW).
        """
        top, left = self.padding
        height, width = self.size
        tall = max(top + height, self.dilation[0] * self.kernel[0] + self.stride[0] * self.out[0])
        wide = max(left + width, self.dilation[1] * self.kernel[1] + self.stride[1] * self.out[1])
        sums = np.zeros((*columns.shape[:2], tall, wide))
        down = np.arange(self.out[0]) * self.stride[0]
        across = np.arange(self.out[1]) * self.stride[1]
        for i, j in np.ndindex(*self.kernel):
            rows, places = down + i * self.dilation[0], across + j * self.dilation[1]
            sums[:, :, rows[:, None], places] += columns[:, :, i, j]
        return sums[:, :, top:, left:][:, :, :height, :width].astype(columns.dtype)

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
