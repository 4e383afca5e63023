"""Batches of images: in another order each epoch, moved and mirrored, made ahead on threads.

What batch b of epoch e is depends on the seed, e and b alone: not on threads, and not on whether
training was interrupted.
"""

import collections
import concurrent.futures

import numpy as np


class Batches:
    """The images of a set, batch by batch."""

    def __init__(
        self, x, y, size, seed=0, statistics=None, crop=0, flip=False, shuffle=True, threads=1,
        ahead=4, empty=np.empty,
    ):  # fmt: skip
        """
        Args:
            x, y: images (N, C, H, W) uint8, and labels (N,).
            size: of a batch; what is left of an epoch is left out.
            seed: of order, places and mirroring.
            statistics: (mean, deviation) of each channel; those of x if None.
            crop: images get a black border of so many pixels, and are cut out of it at random.
            flip: whether one of two is mirrored.
            shuffle: whether each epoch has an order of its own.
            threads: that make batches; 0 makes each when it is asked for.
            ahead: how many are made before they are asked for.
            empty: makes the arrays, from shape and dtype; for a GPU, of pinned memory.

        Raises:
            ValueError: there is not one batch.
        """
        if not 1 <= size <= len(x):
            raise ValueError("batches of %d of %d images" % (size, len(x)))
        self._x, self._y, self.size, self._seed = x, y, size, seed
        mean, deviation = statistics_of(x) if statistics is None else statistics
        shape = (1, -1, 1, 1)
        self._scale = np.float32(1 / (255 * np.asarray(deviation))).reshape(shape)
        self._shift = np.float32(np.asarray(mean) / deviation).reshape(shape)
        self._crop, self._flip, self._shuffle = crop, flip, shuffle
        self._threads, self._ahead = threads, ahead
        self._buffers = [
            empty((size, *x.shape[1:]), np.float32) for _ in range(ahead + 2 if threads else 1)
        ]

    def __len__(self):
        """How many batches an epoch has."""
        return len(self._x) // self.size

    def epoch(self, number, first=0):
        """Yields (images float32 (size, C, H, W) of mean 0 and deviation 1, labels int64).

        An array is used again for a later batch, or another epoch: it is right until the next batch
        is asked for, and what is to be kept is copied. One epoch is walked at a time.

        Args:
            number: of the epoch.
            first: the batch to begin with.
        """
        order = self._order(number)
        places = range(first, len(self))
        if not self._threads:
            yield from (self._made(order, number, place) for place in places)
            return
        with concurrent.futures.ThreadPoolExecutor(self._threads) as pool:
            waiting = collections.deque()
            try:
                for place in places:
                    waiting.append(pool.submit(self._made, order, number, place))
                    if len(waiting) > self._ahead:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for each in waiting:
                    each.cancel()

    def _order(self, epoch):
        if not self._shuffle:
            return np.arange(len(self._x))
        return np.random.default_rng([self._seed, epoch]).permutation(len(self._x))

    def _made(self, order, epoch, place):
        chosen = order[place * self.size : (place + 1) * self.size]
        images = self._x[chosen]
        # A last number of 0 would give the stream of the epoch's order.
        random = np.random.default_rng([self._seed, epoch, place + 1])
        if self._crop:
            images = _cropped(images, self._crop, random)
        if self._flip:
            mirrored = random.random(self.size) < 0.5
            images[mirrored] = images[mirrored, :, :, ::-1]
        found = self._buffers[place % len(self._buffers)]
        np.multiply(images, self._scale, out=found)
        found -= self._shift
        return found, self._y[chosen]


def statistics_of(x):
    """(mean, deviation) of each channel of images (N, C, H, W) uint8, of values from 0 to 1."""
    counts = np.stack([np.bincount(each.ravel(), minlength=256) for each in np.moveaxis(x, 1, 0)])
    values, total = np.arange(256) / 255, counts.sum(1)
    mean = counts @ values / total
    return mean, np.sqrt(counts @ values**2 / total - mean**2)


def _cropped(images, border, random):
    """Images of the same size, cut out of bordered ones at random places."""
    count, _, height, width = images.shape
    sides = (border, border)
    bordered = np.pad(images, ((0, 0), (0, 0), sides, sides))
    windows = np.lib.stride_tricks.sliding_window_view(bordered, (height, width), (2, 3))
    down, across = random.integers(0, 2 * border + 1, (2, count))
    return windows[np.arange(count), :, down, across]
