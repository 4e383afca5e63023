"""Weights in files of the format safetensors, by the names that other frameworks know."""

import os

import numpy as np


def save(path, arrays):
    """Writes name -> array, at once or not at all.

    Raises:
        OSError: the file can't be written.
    """
    from safetensors.numpy import save as as_bytes

    from dlsys.step.files import write_at_once

    write_at_once(
        os.fspath(path), as_bytes({n: np.ascontiguousarray(a) for n, a in arrays.items()})
    )


def load(path):
    """name -> array, of any such file; `module.load_state_dict` takes it.

    Raises:
        OSError: the file can't be read.
        files.FileError: it is damaged.
    """
    from dlsys.step.files import read

    return read(path)[0]
