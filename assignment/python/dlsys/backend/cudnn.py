"""NVIDIA's cuDNN as a method of convolutions, where it is installed: found and called by ctypes.

It comes with PyTorch, or as the wheel nvidia-cudnn. Only float32, as it is or in TF32, and only
algorithms that give the same bits in each run.
"""

import ctypes
import ctypes.util
import dataclasses
import functools
import glob
import importlib.util
import os

from dlsys.dtypes import FLOAT32, INT32
from dlsys.ndarray import is_emulated

from .instructions import Instruction
from .view import new_view
from .windows import Windows

#: Bytes of memory of its own that an algorithm may ask for.
_MOST_ROOM = 512 << 20
#: Algorithms that are asked for.
_MOST_ALGORITHMS = 16
#: Kind -> what cuDNN calls it.
_NAMES = {"value": "Forward", "data": "BackwardData", "weights": "BackwardFilter"}
#: cuDNN's numbers of what is said here.
_NCHW, _FLOAT, _CORRELATION, _DETERMINISTIC = 0, 0, 1, 1
_WITHOUT_TENSOR_CORES, _AS_DEFAULT = 3, 0


class _Found(ctypes.Structure):
    """An algorithm and its time, as cuDNN gives them for all three kinds."""

    _fields_ = [
        ("algorithm", ctypes.c_int),
        ("status", ctypes.c_int),
        ("milliseconds", ctypes.c_float),
        ("memory", ctypes.c_size_t),
        ("determinism", ctypes.c_int),
        ("math", ctypes.c_int),
        ("reserved", ctypes.c_int * 3),
    ]


def refusal(dtype):
    """Why convolutions of a dtype can't be cuDNN's, in words; "" if they can."""
    if is_emulated():
        return "needs a real GPU"
    if dtype != FLOAT32:
        return "computes in float32, not in %s" % dtype
    return "" if _library() else "finds no libcudnn; hint: pip install nvidia-cudnn-cu13"


@functools.cache
def _library():
    """The library, or None."""
    for path in _places():
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    return None


def _places():
    """Where it may lie: in a wheel beside PyTorch, or where the system looks."""
    try:
        spec = importlib.util.find_spec("nvidia.cudnn")
    except ModuleNotFoundError:
        spec = None
    for folder in spec.submodule_search_locations if spec else ():
        yield from sorted(glob.glob(os.path.join(folder, "lib", "libcudnn.so*")))
    found = ctypes.util.find_library("cudnn")
    yield from (found, "libcudnn.so.9", "libcudnn.so.8") if found else ("libcudnn.so.9",)


def _call(name, *arguments):
    """Calls a function of the library; raises a RuntimeError where that fails."""
    library = _library()
    failed = getattr(library, name)(*arguments)
    if failed:
        library.cudnnGetErrorString.restype = ctypes.c_char_p
        said = library.cudnnGetErrorString(failed).decode()
        raise RuntimeError("%s failed: %s" % (name, said))


def _made(what):
    """A new handle or descriptor; it stays."""
    found = ctypes.c_void_p()
    _call("cudnnCreate" + what, ctypes.byref(found))
    return found


@functools.cache
def _handle():
    return _made("")


@functools.lru_cache(10000)
def _tensor(shape):
    found = _made("TensorDescriptor")
    _call("cudnnSetTensor4dDescriptor", found, _NCHW, _FLOAT, *shape)
    return found


@functools.lru_cache(10000)
def _filters(shape):
    found = _made("FilterDescriptor")
    _call("cudnnSetFilter4dDescriptor", found, _FLOAT, _NCHW, *shape)
    return found


@functools.lru_cache(10000)
def _best(kind, shapes, attributes, groups, tf32):
    """(descriptors of a, b, the convolution and out, algorithm, bytes) of the fastest algorithm.

    cuDNN measures each of them, on memory of its own.
    """
    of_x, of_w, of_y = _tensor(shapes[0]), _filters(shapes[1]), _tensor(shapes[2])
    how = _made("ConvolutionDescriptor")
    _call("cudnnSetConvolution2dDescriptor", how, *attributes, _CORRELATION, _FLOAT)
    _call("cudnnSetConvolutionGroupCount", how, groups)
    math = _AS_DEFAULT if tf32 else _WITHOUT_TENSOR_CORES
    _call("cudnnSetConvolutionMathType", how, math)
    a, b, out = {
        "value": (of_x, of_w, of_y), "data": (of_w, of_y, of_x), "weights": (of_x, of_y, of_w)
    }[kind]  # fmt: skip
    _call("cudnnSetStream", _handle(), None)  # the stream of the last launch may be gone
    found, count = (_Found * _MOST_ALGORITHMS)(), ctypes.c_int()
    name = "cudnnFindConvolution%sAlgorithm" % _NAMES[kind]
    _call(name, _handle(), a, b, how, out, _MOST_ALGORITHMS, ctypes.byref(count), found)
    for each in found[: count.value]:  # the fastest first
        is_exact = tf32 or each.math == _WITHOUT_TENSOR_CORES
        is_settled = each.determinism == _DETERMINISTIC and each.memory <= _MOST_ROOM
        if each.status == 0 and is_exact and is_settled:
            _call("cudnnSetConvolutionMathType", how, each.math)
            return (a, b, how, out), each.algorithm, each.memory
    tried = [(e.algorithm, e.status, e.determinism, e.math, e.memory) for e in found[: count.value]]
    raise RuntimeError("%s has no algorithm for %s: %s" % (name, shapes, tried))


@dataclasses.dataclass(eq=False)
class CudnnConvolution(Instruction):
    """A convolution: its "value" of x and w, or the gradient of x ("data") or w ("weights").

    "data" reads w and g, "weights" x and g; all lie dense.
    """

    kind: str
    windows: Windows
    channels: tuple
    groups: int
    #: Whether it may round to TF32, for tensor cores.
    tf32: bool = False

    def use_tf32(self):
        """Has tensor cores multiply; before anybody asks for operands."""
        self.tf32 = True

    @functools.cached_property
    def _best(self):
        images, channels, filters = self.channels
        windows = self.windows
        shapes = (
            (images, channels, *windows.size),
            (filters, channels // self.groups, *windows.kernel),
            (images, filters, *windows.out),
        )
        said = (*windows.padding, *windows.stride, *windows.dilation)
        return _best(self.kind, shapes, said, self.groups, self.tf32)

    @functools.cached_property
    def _room(self):
        memory = self._best[2]
        return (new_view((-(-memory // 4),), INT32),) if memory else ()

    @property
    def operands(self):
        """Output, inputs, room."""
        return (self.output, *self.inputs, *self._room)

    @property
    def written(self):
        """The output, and room."""
        return (self.output, *self._room)

    @property
    def key(self):
        """One kernel is for all."""
        return ("cudnn",)

    @property
    def sizes(self):
        """See cudnn.cuh."""
        descriptors, algorithm, memory = self._best
        library = _library()
        functions = ("cudnnSetStream", "cudnnConvolution" + _NAMES[self.kind])
        addresses = [ctypes.cast(getattr(library, f), ctypes.c_void_p).value for f in functions]
        values = [each.value for each in (_handle(), *descriptors)]
        return (*addresses, *values, algorithm, memory)
