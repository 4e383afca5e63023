"""MNIST for the training recipes: a folder, the cache, a download, or scikit-learn's digits."""

import argparse
import gzip
import os
import struct
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dlsys.download import DataError, Remote, fetch, read_bytes


class Mnist(NamedTuple):
    """Images (N, 784) float32 in [0, 1], labels (N,) int64 in 0..9, and where they came from."""

    train_x: np.ndarray
    train_y: np.ndarray
    valid_x: np.ndarray
    valid_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray
    source: str


class IdxFile(NamedTuple):
    """One of the four files: name without .gz, md5 of the decompressed bytes, shape."""

    name: str
    md5: str
    shape: tuple


# Train images, train labels, test images, test labels; load_mnist counts on this order.
FILES = (
    IdxFile("train-images-idx3-ubyte", "6bbc9ace898e44ae57da46a324031adb", (60000, 28, 28)),
    IdxFile("train-labels-idx1-ubyte", "a25bea736e30d166cdddb491f175f624", (60000,)),
    IdxFile("t10k-images-idx3-ubyte", "2646ac647ad5339dbf082846283269ea", (10000, 28, 28)),
    IdxFile("t10k-labels-idx1-ubyte", "27ae3e4e09519cfbb04c329615203637", (10000,)),
)
VALIDATION_IMAGES = 10_000  # the last ones of the training file
MIRRORS = (
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
)

# IDX type byte -> big-endian numpy dtype (http://yann.lecun.com/exdb/mnist, "the IDX file format")
IDX_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


# --- IDX files ---------------------------------------------------------------------------------


def read_idx(path):
    """The array in an IDX file, .gz or plain (told by content), in native byte order.

    Raises DataError, naming the file, when it is missing, corrupt, truncated or no IDX file.
    """
    data = read_bytes(path)
    if len(data) < 4 or data[:2] != b"\0\0":
        raise DataError(f"{path}: not an IDX file: starts with {data[:4].hex() or 'nothing'}")
    if data[2] not in IDX_TYPES:
        raise DataError(f"{path}: unknown IDX type 0x{data[2]:02x}; known: {_known_types()}")
    dtype, start = np.dtype(IDX_TYPES[data[2]]), 4 + 4 * data[3]
    if len(data) < start:
        raise DataError(f"{path}: truncated in the header: {len(data)} of {start} bytes")
    shape = struct.unpack(f">{data[3]}I", data[4:start])
    _check_size(path, len(data) - start, shape, dtype)
    array = np.frombuffer(data, dtype, offset=start).reshape(shape)
    return array.astype(dtype.newbyteorder("="))


def write_idx(path, array):
    """Write `array` as an IDX file, compressed when the name ends in .gz (same bytes each time).

    Raises DataError for a dtype that IDX lacks (it has u1, i1, i2, i4, f4, f8).
    """
    array = np.asarray(array)
    big = array.dtype.newbyteorder(">")
    codes = {np.dtype(name): code for code, name in IDX_TYPES.items()}
    if big not in codes:
        raise DataError(f"{path}: IDX has no type for {array.dtype}; it has: {_known_types()}")
    head = struct.pack(f">BBBB{array.ndim}I", 0, 0, codes[big], array.ndim, *array.shape)
    data = head + array.astype(big).tobytes()
    Path(path).write_bytes(gzip.compress(data, mtime=0) if str(path).endswith(".gz") else data)


def _known_types():
    return ", ".join(f"0x{code:02x} {name.strip('>')}" for code, name in IDX_TYPES.items())


def _check_size(path, found, shape, dtype):
    want = int(np.prod(shape, dtype=object)) * dtype.itemsize
    if found < want:
        raise DataError(f"{path}: truncated: {found} of {want} bytes for shape {shape}")
    if found > want:
        raise DataError(f"{path}: {found - want} bytes too many for shape {shape}")


# --- a folder with the four files ---------------------------------------------------------------


def _find(folder, name):
    """The file, decompressed or .gz, or None."""
    for path in (Path(folder) / name, Path(folder) / (name + ".gz")):
        if path.is_file():
            return path
    return None


def _lacking(folder):
    return [file.name for file in FILES if _find(folder, file.name) is None]


def _load_folder(folder, labelled):
    """Mnist from `folder`; DataError, which opens with `labelled`, when a file is not there."""
    if lacking := _lacking(folder):
        what = "is not a folder" if not Path(folder).is_dir() else f"lacks {', '.join(lacking)}"
        names = ", ".join(file.name for file in FILES)
        raise DataError(
            f"{labelled} {what}; hint: it should hold {names}, each with or without .gz"
        )
    train_x, train_y, test_x, test_y = (_load_file(folder, file) for file in FILES)
    cut = len(train_x) - VALIDATION_IMAGES
    train, valid = (train_x[:cut], train_y[:cut]), (train_x[cut:], train_y[cut:])
    return Mnist(*train, *valid, test_x, test_y, str(folder))


def _load_file(folder, file):
    path = _find(folder, file.name)
    array = read_idx(path)
    if array.shape != file.shape or array.dtype != np.uint8:
        found = f"{array.dtype} {array.shape}"
        raise DataError(f"{path}: holds {found}; MNIST's {file.name} is uint8 {file.shape}")
    if array.ndim == 1:
        return array.astype(np.int64)
    return np.divide(array.reshape(len(array), -1), np.float32(255), dtype=np.float32)


def cache_folder(name="mnist"):
    """Where a data set is kept: a folder of that name in the user's cache."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "dlsys" / name


def _download(folder):
    """Fetch what `folder` lacks. Raises DataError or OSError; never leaves half a file."""
    lacking = [file for file in FILES if _find(folder, file.name) is None]
    fetch(folder, [Remote(file.name + ".gz", file.md5, True) for file in lacking], MIRRORS)


# --- scikit-learn's digits ----------------------------------------------------------------------


def _bilinear(images, size):
    """(N, h, h) -> (N, size, size), bilinear, pixel centres aligned, edges repeated."""
    small = images.shape[1]
    at = np.clip((np.arange(size) + 0.5) * small / size - 0.5, 0, small - 1)
    weights = np.maximum(0, 1 - np.abs(at[:, None] - np.arange(small)))
    return weights @ images @ weights.T


def _load_digits():
    """1,797 digits of 8x8 pixels (UCI "Optical Recognition of Handwritten Digits") at 28x28."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    order = np.random.RandomState(0).permutation(len(digits.target))
    x = (_bilinear(digits.images, 28) / 16).reshape(-1, 784).astype(np.float32)[order]
    y = digits.target.astype(np.int64)[order]
    parts = (part for a, b in ((0, 1200), (1200, 1500), (1500, 1797)) for part in (x[a:b], y[a:b]))
    return Mnist(*parts, "scikit-learn's 1,797 handwritten digits")


def _fall_back(reason):
    try:
        digits = _load_digits()
    except ImportError:
        raise DataError(
            f"MNIST was not found ({reason}), and scikit-learn's digits cannot stand in for it; "
            "hint: set DLSYS_DATA to a folder with MNIST, or pip install scikit-learn"
        ) from None
    instead = "training on scikit-learn's 1,797 handwritten digits instead"
    print(f"MNIST was not found ({reason}); {instead}; hint: set DLSYS_DATA", file=sys.stderr)
    return digits


# --- what a recipe calls ------------------------------------------------------------------------


def load_mnist(path=None, offline=False):
    """MNIST, or a stand-in with a line on stderr: 50,000 train, 10,000 validate, 10,000 test.

    Looks in `path`, else $DLSYS_DATA (or its subfolder mnist), else the cache, else downloads
    into the cache (not when `offline` or DLSYS_OFFLINE=1), else takes scikit-learn's digits
    (1,200, 300 and 297). The first training images train, the last validate.
    Raises DataError when `path` or $DLSYS_DATA lacks a file, or when a file is corrupt.
    """
    if path is not None:
        return _load_folder(path, str(path))
    if given := os.environ.get("DLSYS_DATA"):
        below = Path(given) / "mnist"
        return _load_folder(below if not _lacking(below) else given, f"DLSYS_DATA={given}")
    cache = cache_folder()
    reason = _fill_cache(cache, offline or is_offline())
    return _fall_back(reason) if reason else _load_folder(cache, str(cache))


def is_offline():
    """Whether the environment forbids downloads."""
    return os.environ.get("DLSYS_OFFLINE", "0") not in ("", "0")


def _fill_cache(cache, offline):
    """Why the cache is not complete, or None when it is."""
    if not _lacking(cache):
        return None
    if offline:
        return f"{cache} lacks files, and offline mode skips the download"
    try:
        return _download(cache)
    except (DataError, OSError) as error:
        return str(error)


def one_hot(labels, classes=10):
    """(N,) integers in 0..classes-1 -> (N, classes) float32. Raises ValueError outside."""
    labels = np.asarray(labels)
    outside = np.flatnonzero((labels < 0) | (labels >= classes))
    if outside.size:
        first = outside[0]
        raise ValueError(
            f"one_hot: label {labels[first]} at index {first} is not in 0..{classes - 1}"
        )
    return np.eye(classes, dtype=np.float32)[labels]


def main(argv=None):
    """`python -m dlsys.data`: say where the data is, how much, and of which classes."""
    parser = argparse.ArgumentParser(prog="python -m dlsys.data", description=main.__doc__)
    parser.add_argument("--path", help="folder with the four files of MNIST")
    parser.add_argument("--offline", action="store_true", help="do not download")
    options = parser.parse_args(argv)
    try:
        data = load_mnist(options.path, options.offline)
    except DataError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"found in {data.source}")
    for name, y in zip(("train", "valid", "test"), data[1:6:2], strict=True):
        print(f"{name:6}{len(y):6} images, of each class 0..9: {np.bincount(y, minlength=10)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
