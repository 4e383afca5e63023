"""A step's state in a file of the format safetensors, with a sum over all that it says."""

import contextlib
import hashlib
import json
import os

import numpy as np

_FORMAT = "dlsys step 1"


class FileError(ValueError):
    """A file that holds no state, or that of another step."""


def save(path, arrays, draws):
    """Writes a file beside its place, then moves it there.

    Args:
        path: where to.
        arrays: name -> numpy array.
        draws: the numbers of the next runs of random nodes.
    """
    from safetensors.numpy import save as as_bytes

    draws = [int(number) for number in draws]
    # One entry: of several, the library chooses the order.
    said = {_FORMAT: json.dumps({"draws": draws, "sha256": _digest(arrays, draws)})}
    content = as_bytes(
        {n: np.ascontiguousarray(a).reshape(a.shape) for n, a in arrays.items()}, said
    )
    write_at_once(os.fspath(path), content)


def write_at_once(path, content):
    """Writes bytes beside a path, then moves them there: whenever it ends, one file is whole."""
    temporary = "%s.%d.part" % (path, os.getpid())
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(temporary)


def load(path, names, draws):
    """What `save` wrote: (name -> array, numbers of the next runs).

    Args:
        path: where from.
        names: those that there must be, and no others.
        draws: how many random nodes there must be.

    Raises:
        FileError: the file is damaged, or has other names.
    """
    arrays, said = read(path)
    if _FORMAT not in said:
        raise FileError("%s is not from a step; hint: step.save(path) writes it" % path)
    try:
        said = json.loads(said[_FORMAT])
        numbers = said["draws"]
        is_right = said["sha256"] == _digest(arrays, numbers)
    except (ValueError, TypeError, KeyError):
        is_right = False
    if not is_right:
        raise FileError("%s is damaged: what it says and its sum differ" % path)
    missing, surplus = set(names) - set(arrays), set(arrays) - set(names)
    if missing or surplus:
        raise FileError(
            "%s is of another step: it lacks %s, and has %s besides"
            % tuple([path, *(", ".join(sorted(each)) or "nothing" for each in (missing, surplus))])
        )
    if len(numbers) != draws:
        raise FileError("%s has %d random nodes, this step %d" % (path, len(numbers), draws))
    return arrays, numbers


def read(path):
    """(name -> array, what else the file says), of any file of the format.

    Raises:
        FileError: it is damaged.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with open(path, "rb"):
            pass
        with safe_open(os.fspath(path), framework="numpy") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}
    except SafetensorError as error:
        raise FileError("%s is damaged: %s" % (path, error)) from None


def _digest(arrays, draws):
    """A sum over names, dtypes, shapes, elements and numbers of runs."""
    sum_of_all = hashlib.sha256(json.dumps(draws).encode())
    for name, array in sorted(arrays.items()):
        sum_of_all.update(("%r %s %s" % (name, array.dtype, array.shape)).encode())
        sum_of_all.update(np.ascontiguousarray(array).tobytes())
    return sum_of_all.hexdigest()
