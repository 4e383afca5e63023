"""Arrays on the CPU or on the GPU, owned by the C runtime: float32 unless told otherwise."""

import ctypes

import numpy as np

from . import dlpack
from ._base import _LIB, c_array, check_call
from .dtypes import checked


class DLContext(ctypes.Structure):
    """A device: its number, then its type (1 is 'cpu', 2 is 'gpu')."""

    _fields_ = [("device_id", ctypes.c_int), ("device_type", ctypes.c_int)]

    MASK2STR = {1: "cpu", 2: "gpu"}

    def __init__(self, device_id, device_type):
        super().__init__()
        self.device_id = device_id
        self.device_type = device_type

    def __repr__(self):
        return "%s(%d)" % (DLContext.MASK2STR[self.device_type], self.device_id)


class DLArray(ctypes.Structure):
    """The struct DLArray of dlarray.h."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("ctx", DLContext),
        ("ndim", ctypes.c_int),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
    ]


DLArrayHandle = ctypes.POINTER(DLArray)


#: See `allocations`.
_made = 0


def cpu(dev_id=0):
    """The CPU as a device."""
    return DLContext(dev_id, 1)


def gpu(dev_id=0):
    """GPU number dev_id as a device."""
    return DLContext(dev_id, 2)


def is_gpu_ctx(ctx):
    """Whether ctx is a GPU. None for None, which stands for numpy."""
    return ctx and ctx.device_type == 2


class NDArray:
    """An array of fixed shape and dtype on one device. It owns its memory.

    `a[:] = values` copies in, `a.asnumpy()` copies out, `a.copyto(target)` copies across.
    """

    __slots__ = ["handle"]

    #: That of the elements.
    dtype = np.dtype(np.float32)

    def __init__(self, handle):
        """Takes over `handle`, a DLArrayHandle from DLArrayAlloc."""
        self.handle = handle

    def __del__(self):
        # Unchecked: an exception here can't reach anybody, and after a failed kernel every free
        # fails, each with a traceback that would hide the first error.
        _LIB.DLArrayFree(self.handle)

    def __repr__(self):
        dtype = "" if self.dtype == np.float32 else ", dtype=%s" % self.dtype
        return "NDArray(shape=%r, ctx=%r%s)" % (self.shape, self.ctx, dtype)

    @property
    def shape(self):
        """The shape, a tuple of ints."""
        return tuple(self.handle.contents.shape[i] for i in range(self.handle.contents.ndim))

    @property
    def ctx(self):
        """The device. It lies inside the C struct; don't keep it longer than the array."""
        return self.handle.contents.ctx

    def __setitem__(self, in_slice, value):
        """`a[:] = value`: overwrites the whole array.

        Raises:
            ValueError: the slice is not `[:]`, or the shapes differ.
            TypeError: value is neither an NDArray nor a numpy array or scalar.
        """
        if (
            not isinstance(in_slice, slice)
            or in_slice.start is not None
            or in_slice.stop is not None
        ):
            raise ValueError("an NDArray can only be set as a whole; hint: a[:] = value")
        if isinstance(value, NDArray):
            if value.handle is not self.handle:
                value.copyto(self)
        elif isinstance(value, (np.ndarray, np.generic)):
            self._sync_copyfrom(value)
        else:
            raise TypeError("can't set an NDArray from type %s" % type(value))

    def _sync_copyfrom(self, source_array):
        """Copies an array-like in, converted to the dtype.

        Raises:
            TypeError: it can't be made an array of that dtype.
            ValueError: its shape is not this array's.
        """
        if not isinstance(source_array, np.ndarray):
            try:
                source_array = np.array(source_array, dtype=self.dtype)
            except (TypeError, ValueError) as error:
                raise TypeError("array must be array-like, not %s" % type(source_array)) from error
        source_array = np.asarray(source_array, dtype=self.dtype, order="C")
        if source_array.shape != self.shape:
            raise ValueError(
                "array shapes differ: the target is %s, the source is %s"
                % (self.shape, source_array.shape)
            )
        words = _in_words(source_array)
        source, _keep_alive = NDArray._numpyasarray(words)
        check_call(_LIB.DLArrayCopyFromTo(ctypes.byref(source), self._words().handle, None))

    @staticmethod
    def _numpyasarray(np_data):
        """A DLArray on cpu(0) over the memory of a float32 numpy array.

        Returns:
            (DLArray, the ctypes array of its shape, to be kept alive as long).
        """
        assert np_data.flags["C_CONTIGUOUS"]
        shape = c_array(ctypes.c_int64, np_data.shape)
        arr = DLArray(
            data=np_data.ctypes.data_as(ctypes.c_void_p),
            ctx=cpu(0),
            ndim=np_data.ndim,
            shape=shape,
        )
        return arr, shape

    def asnumpy(self):
        """A copy as a numpy array. Waits for the kernels that write this array."""
        words = np.empty(_words_of(self.shape, self.dtype), dtype=np.float32)
        target, _keep_alive = NDArray._numpyasarray(words)
        check_call(_LIB.DLArrayCopyFromTo(self._words().handle, ctypes.byref(target), None))
        size = size_of(self.shape) * self.dtype.itemsize
        return words.view(np.uint8)[:size].view(self.dtype).reshape(self.shape)

    def _words(self):
        """This memory as float32, which is all that the C runtime knows."""
        if self.dtype == np.float32:
            return self
        return _View(self, (_words_of(self.shape, self.dtype),))

    def copyto(self, target):
        """Copies into `target`, or into a new array if `target` is a DLContext.

        Returns:
            The target NDArray.

        Raises:
            ValueError: target is neither.
            TypeError: the dtypes differ.
            DeviceError: the sizes differ.
        """
        if isinstance(target, DLContext):
            target = empty(self.shape, target, self.dtype)
        if not isinstance(target, NDArray):
            raise ValueError("can't copy to type %s" % type(target))
        if target.dtype != self.dtype:
            raise TypeError("can't copy %s to an array of %s" % (self.dtype, target.dtype))
        check_call(_LIB.DLArrayCopyFromTo(self._words().handle, target._words().handle, None))
        return target

    def reshape(self, *shape):
        """A view of the same elements in another shape; one extent may be -1.

        Raises:
            ValueError: it has another number of elements.
        """
        wanted = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        wanted = np.broadcast_to(np.int8(0), self.shape).reshape(wanted).shape
        return _View(self, wanted, self.dtype)

    def __getitem__(self, rows):
        """A view of some rows: `a[3]`, `a[2:5]`, along the first axis alone and without steps.

        Raises:
            IndexError: there is no such row.
            TypeError: it is not a whole number or a slice without steps.
        """
        if not self.shape:
            raise IndexError("%r has no axes" % self)
        count, rest = self.shape[0], self.shape[1:]
        if isinstance(rows, slice) and rows.step in (None, 1):
            begin, end, _ = rows.indices(count)
            shape = (max(0, end - begin), *rest)
        elif isinstance(rows, (int, np.integer)):
            if not -count <= rows < count:
                raise IndexError("row %d of %d" % (rows, count))
            begin, shape = rows % count, rest
        else:
            raise TypeError("rows are a number or a slice without steps; hint: ops on a node")
        return _View(self, shape, self.dtype, begin * size_of(rest) * self.dtype.itemsize)

    def __len__(self):
        """The length of the first axis."""
        if not self.shape:
            raise TypeError("%r has no axes" % self)
        return self.shape[0]

    def __array__(self, dtype=None, copy=None):
        """What numpy sees: on the CPU the memory itself, unless it needs another dtype or a copy.

        Raises:
            ValueError: a copy is needed, and not wanted.
        """
        if is_gpu_ctx(self.ctx) and copy is False:
            raise ValueError("numpy can't see %r without a copy" % self)
        # numpy's interface knows no bfloat16, which passes as whole numbers of its size.
        seen = self.asnumpy() if is_gpu_ctx(self.ctx) else np.asarray(_Interface(self))
        values = seen.view(self.dtype)
        return np.array(values, dtype=dtype, copy=copy)

    @property
    def __cuda_array_interface__(self):
        """The memory for libraries of CUDA.

        Raises:
            AttributeError: it does not lie on a real GPU.
        """
        if not is_gpu_ctx(self.ctx) or is_emulated():
            raise AttributeError("%r does not lie on a real GPU" % self)
        if self.dtype.kind not in "biuf":
            raise AttributeError("CUDA's interface knows no %s; hint: DLPack" % self.dtype)
        return _interface(self)

    def __dlpack__(self, copy=None, **_options):
        """The memory for another library, by DLPack; see dlpack.py.

        Raises:
            BufferError: it lies on an emulated GPU, which no other library knows; or a copy is
                wanted.
        """
        if copy:
            raise BufferError("an NDArray is lent without a copy; hint: copy what you get")
        return dlpack.lend(self, *self.__dlpack_device__())

    def __dlpack_device__(self):
        """(DLPack's number for the kind of device, its number)."""
        if not is_gpu_ctx(self.ctx):
            return dlpack.CPU, self.ctx.device_id
        if is_emulated():
            raise BufferError("%r lies on an emulated GPU; hint: its asnumpy()" % self)
        return dlpack.CUDA, self.ctx.device_id


def is_emulated():
    """Whether the GPU is the emulated one, whose memory no other library can use."""
    return hasattr(_LIB, "emulator_cuda_malloc_count")


def _interface(array):
    """What numpy's and CUDA's array interfaces say of an NDArray."""
    address = array.handle.contents.data or 0
    typestr = array.dtype.str if array.dtype.kind in "biuf" else "<u2"
    return {"shape": array.shape, "typestr": typestr, "data": (address, False), "version": 3}


class _Interface:
    """What numpy asks for an array on the CPU, which it keeps alive."""

    def __init__(self, array):
        self.array = array
        self.__array_interface__ = _interface(array)


class _Borrowed(NDArray):
    """An NDArray over another library's memory, which it keeps alive."""

    __slots__ = ["_memory", "_shape", "_struct", "dtype"]

    def __init__(self, memory, ctx, dtype=np.float32):
        self.dtype = np.dtype(dtype)
        self._memory = memory
        self._shape = c_array(ctypes.c_int64, memory.shape)
        self._struct = DLArray(data=memory.data, ctx=ctx, ndim=len(memory.shape), shape=self._shape)
        super().__init__(ctypes.pointer(self._struct))

    def __del__(self):
        """The other library frees the memory."""


class _View(NDArray):
    """An NDArray over elements of another one's memory, which it keeps alive."""

    __slots__ = ["_base", "_shape", "_struct", "dtype"]

    def __init__(self, base, shape, dtype=np.float32, offset=0):
        self.dtype = np.dtype(dtype)
        self._base = base
        self._shape = c_array(ctypes.c_int64, shape)
        struct = base.handle.contents
        data = (struct.data or 0) + offset
        self._struct = DLArray(data=data, ctx=struct.ctx, ndim=len(shape), shape=self._shape)
        super().__init__(ctypes.pointer(self._struct))

    def __del__(self):
        """The base frees the memory."""


def allocations():
    """How many arrays have been made so far, on the CPU and on GPUs."""
    return _made


def size_of(shape):
    """Number of elements of an array of this shape; 1 for ()."""
    size = 1
    for extent in shape:
        size *= extent
    return size


def _words_of(shape, dtype):
    """How many float32 an array of this shape and dtype takes."""
    return -(-size_of(shape) * np.dtype(dtype).itemsize // 4)


def _in_words(array):
    """The memory of a dense numpy array as float32, the last of them filled up."""
    if array.dtype == np.float32:
        return array
    flat = array.reshape(-1).view(np.uint8)
    return np.pad(flat, (0, -flat.size % 4)).view(np.float32)


def view(base, shape):
    """An NDArray of another shape over the first elements of `base`, sharing its memory.

    Raises:
        ValueError: base has fewer elements than shape.
    """
    if size_of(shape) > size_of(base.shape):
        raise ValueError(
            "a view of shape %s does not fit into an array of shape %s" % (shape, base.shape)
        )
    return _View(base, shape, base.dtype)


class _Lent:
    """The memory of a dense numpy array."""

    def __init__(self, values):
        self.values = values
        self.shape, self.data = values.shape, values.ctypes.data


def lent(values):
    """An NDArray on the CPU over the memory of a dense numpy array, without a copy."""
    return _Borrowed(_Lent(values), cpu(0), values.dtype)


def from_dlpack(producer):
    """An NDArray over the memory of another library's array, without a copy.

    Raises:
        TypeError, ValueError: the array is of another kind; see dlpack.Borrowed.
        BufferError: it lies on another kind of device.
    """
    memory = dlpack.Borrowed(producer)
    kind, number = memory.device
    if kind != dlpack.CPU and (kind != dlpack.CUDA or is_emulated()):
        raise BufferError("the array lies on a device that is neither the CPU nor our GPU")
    return _Borrowed(memory, gpu(number) if kind == dlpack.CUDA else cpu(number), memory.dtype)


def array(arr, ctx=cpu(0), dtype=np.float32):  # noqa: B008 (the published default, a constant)
    """A new NDArray with the values of an array-like, as float32 or another dtype."""
    if not isinstance(arr, np.ndarray):
        arr = np.array(arr)
    ret = empty(arr.shape, ctx, dtype)
    ret._sync_copyfrom(arr)
    return ret


def empty(shape, ctx=cpu(0), dtype=np.float32):  # noqa: B008 (the published default, a constant)
    """A new NDArray, not initialised. `shape` is a sequence of ints; () is one element.

    Raises:
        TypeError: no device has arrays of this dtype.
    """
    if dtype != np.float32:
        dtype = checked(dtype)
        return _View(empty((_words_of(shape, dtype),), ctx), shape, dtype)
    global _made
    _made += 1
    shape = c_array(ctypes.c_int64, shape)
    handle = DLArrayHandle()
    check_call(_LIB.DLArrayAlloc(shape, ctypes.c_int(len(shape)), ctx, ctypes.byref(handle)))
    return NDArray(handle)
