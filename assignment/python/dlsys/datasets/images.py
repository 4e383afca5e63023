"""Sets of images: CIFAR-10, Fashion-MNIST, and a synthetic one that needs nothing."""

import os
import shutil
import tarfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dlsys.data import cache_folder, is_offline, read_idx
from dlsys.download import DataError, Remote, fetch, read_bytes

from .batches import statistics_of

#: The last images of the training files, by which settings are chosen.
VALIDATION_IMAGES = 1000


class Images(NamedTuple):
    """Images (N, C, H, W) uint8, labels (N,) int64, names of the classes, where they came from."""

    train_x: np.ndarray
    train_y: np.ndarray
    valid_x: np.ndarray
    valid_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray
    classes: tuple
    source: str

    def statistics(self):
        """(mean, deviation) of each channel of the training images, of values from 0 to 1."""
        return statistics_of(self.train_x)


CIFAR10_CLASSES = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip
FASHION_CLASSES = (
    "t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag",
    "ankle boot",
)  # fmt: skip
#: Five files of training images, and one of test images.
CIFAR10_FILES = (*("data_batch_%d.bin" % i for i in range(1, 6)), "test_batch.bin")
CIFAR10_ARCHIVE = Remote("cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530")
#: Images in each file; a label and three planes of 32 x 32 bytes each.
CIFAR10_IMAGES, CIFAR10_RECORD = 10_000, 1 + 3 * 32 * 32
#: Labels with which the official test images begin: rebuilt copies have other pixels and orders.
CIFAR10_FIRST_LABELS = (3, 8, 8, 0, 6, 6, 1, 6, 3, 1)
FASHION_FILES = (
    Remote("train-images-idx3-ubyte.gz", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
    Remote("train-labels-idx1-ubyte.gz", "25c81989df183df01b3e8a0aad5dffbe"),
    Remote("t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79"),
    Remote("t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310"),
)
MIRRORS = {
    "cifar10": ("https://www.cs.toronto.edu/~kriz/",),
    "fashion-mnist": ("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",),
}


def load(name, path=None, offline=False):
    """A set of images by its name, one of NAMES.

    CIFAR-10 and Fashion-MNIST are looked for in `path`, else in the folder of their name in
    $DLSYS_DATA or there itself, else in the cache, else downloaded into it (not when `offline` or
    DLSYS_OFFLINE=1). The last 1,000 training images are for validation.

    Raises:
        DataError: it can't be had, or a file is not what it should be.
        ValueError: there is no such set.
    """
    if name not in NAMES:
        raise ValueError("there is no set %r; hint: %s" % (name, ", ".join(NAMES)))
    if name == "synthetic":
        return synthetic()
    files, read, get = _KINDS[name]
    return read(_folder(name, files, get, path, offline))


def _folder(name, files, get, path, offline):
    """The folder that holds the files of a set."""
    given = os.environ.get("DLSYS_DATA")
    places = [Path(path)] if path else [Path(given) / name, Path(given)] if given else []
    for place in places:
        for folder in (place, place / "cifar-10-batches-bin"):
            if not _lacking(folder, files):
                return folder
    if path:
        lacking = ", ".join(_lacking(Path(path), files))
        raise DataError("%s lacks %s; hint: a folder with %s" % (path, lacking, _ORIGIN[name]))
    cache = cache_folder(name)
    if _lacking(cache, files):
        if offline or is_offline():
            raise DataError(
                "%s was not found, and offline mode skips the download; hint: --path, or DLSYS_DATA"
                % name
            )
        try:
            get(cache)
        except (DataError, OSError) as error:
            raise DataError(
                "%s: %s; hint: --path, or DLSYS_DATA, names a folder with %s"
                % (name, error, _ORIGIN[name])
            ) from None
    return cache


def _lacking(folder, files):
    return [name for name in files if not (folder / name).is_file()]


def _get_cifar10(cache):
    """Downloads the archive, and unpacks its six files one by one."""
    fetch(cache, [CIFAR10_ARCHIVE], MIRRORS["cifar10"])
    archive = cache / CIFAR10_ARCHIVE.name
    with tarfile.open(archive) as packed:
        for member in packed:
            name = Path(member.name).name
            if name in CIFAR10_FILES and member.isfile():
                part = cache / (name + ".part")
                with packed.extractfile(member) as source, open(part, "wb") as target:
                    shutil.copyfileobj(source, target)
                os.replace(part, cache / name)
    archive.unlink()


def _get_fashion(cache):
    lacking = _lacking(cache, [file.name for file in FASHION_FILES])
    wanted = [file for file in FASHION_FILES if file.name in lacking]
    fetch(cache, wanted, MIRRORS["fashion-mnist"])


def _read_cifar10(folder):
    records = [_records(folder / name) for name in CIFAR10_FILES]
    train, test = np.concatenate(records[:-1]), records[-1]
    (x, y), (test_x, test_y) = (
        (each[:, 1:].reshape(-1, 3, 32, 32), each[:, 0].astype(np.int64)) for each in (train, test)
    )
    is_official = tuple(test_y[:10]) == CIFAR10_FIRST_LABELS
    source = "%s%s" % (folder, "" if is_official else ", a copy that is not the official one")
    return _split(x, y, test_x, test_y, CIFAR10_CLASSES, source)


def _records(path):
    """The records of one file, (images, CIFAR10_RECORD)."""
    content, wanted = read_bytes(path), CIFAR10_IMAGES * CIFAR10_RECORD
    if len(content) != wanted:
        raise DataError(
            "%s: %d bytes, not %d; hint: delete it and fetch it again"
            % (path, len(content), wanted)
        )
    found = np.frombuffer(content, np.uint8).reshape(-1, CIFAR10_RECORD)
    if found[:, 0].max() > 9:
        raise DataError("%s: label %d is not among 0 .. 9" % (path, found[:, 0].max()))
    return found


def _read_fashion(folder):
    x, y, test_x, test_y = (read_idx(folder / file.name) for file in FASHION_FILES)
    for images, labels in ((x, y), (test_x, test_y)):
        if images.shape != (len(labels), 28, 28):
            raise DataError("%s: images are %s, labels %s" % (folder, images.shape, labels.shape))
    x, test_x = x[:, None], test_x[:, None]
    return _split(x, y.astype(np.int64), test_x, test_y.astype(np.int64), FASHION_CLASSES, folder)


def _split(x, y, test_x, test_y, classes, source):
    cut = len(x) - VALIDATION_IMAGES
    return Images(x[:cut], y[:cut], x[cut:], y[cut:], test_x, test_y, classes, str(source))


def synthetic(count=2000, size=32, seed=0):
    """Ten patterns of colours, each image one of them, moved, with noise: soon learned.

    Args:
        count: of images; a tenth validates, another tests.
        size: height and width.
        seed: of the patterns and the noise.
    """
    random = np.random.default_rng(seed)
    coarse = random.integers(40, 216, (10, 3, 4, 4))
    patterns = coarse.repeat(-(-size // 4), 2).repeat(-(-size // 4), 3)[:, :, :size, :size]
    y = random.integers(0, 10, count)
    moved = [np.roll(patterns[label], random.integers(-2, 3, 2), (1, 2)) for label in y]
    x = np.clip(np.stack(moved) + random.normal(0, 30, (count, 3, size, size)), 0, 255)
    x, few = x.astype(np.uint8), count // 10
    parts = [(x[a:b], y[a:b]) for a, b in ((2 * few, None), (0, few), (few, 2 * few))]
    classes = tuple("pattern %d" % number for number in range(10))
    return Images(*(part for pair in parts for part in pair), classes, "synthetic, seed %d" % seed)


_KINDS = {
    "cifar10": (CIFAR10_FILES, _read_cifar10, _get_cifar10),
    "fashion-mnist": ([file.name for file in FASHION_FILES], _read_fashion, _get_fashion),
}
_ORIGIN = {
    "cifar10": "the six files of cifar-10-binary.tar.gz",
    "fashion-mnist": "the set's four files, packed by gzip as they are",
}
#: What `load` knows.
NAMES = (*_KINDS, "synthetic")
