"""Shares arrays with other libraries without a copy, by DLPack: dense ones.

A producer wraps a DLManagedTensor in a capsule named "dltensor". Who takes it renames the capsule,
and calls the tensor's deleter when it is done with the memory. https://dmlc.github.io/dlpack
"""

import ctypes

from .dtypes import DLPACK_CODES, of_dlpack

CPU, CUDA = 1, 2
NAME, TAKEN = b"dltensor", b"used_dltensor"


class DLDevice(ctypes.Structure):
    """Where memory lies."""

    _fields_ = [("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)]


class DLDataType(ctypes.Structure):
    """The type of an element: a code (2 is a float), and its bits."""

    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class DLTensor(ctypes.Structure):
    """An array, whoever owns its memory. Strides count elements; none is row-major."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", DLDevice),
        ("ndim", ctypes.c_int32),
        ("dtype", DLDataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class DLManagedTensor(ctypes.Structure):
    """An array, and what to call when it is not needed any more."""


Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(DLManagedTensor))
DLManagedTensor._fields_ = [
    ("dl_tensor", DLTensor),
    ("manager_ctx", ctypes.c_void_p),
    ("deleter", Deleter),
]

Destructor = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_API = ctypes.pythonapi
_NEW, _VALID = _API.PyCapsule_New, _API.PyCapsule_IsValid
_POINTER, _RENAME = _API.PyCapsule_GetPointer, _API.PyCapsule_SetName
_NEW.restype, _NEW.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, Destructor]
_VALID.restype, _VALID.argtypes = ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p]
_POINTER.restype, _POINTER.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p]
_RENAME.restype, _RENAME.argtypes = ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p]

#: What others hold of ours: address of the tensor -> (tensor, the array whose memory it is).
_LENT = {}


@Deleter
def _give_back(managed):
    _LENT.pop(ctypes.addressof(managed.contents), None)


@Destructor
def _drop(capsule):
    """Of a capsule that nobody took."""
    if _VALID(capsule, NAME):
        _LENT.pop(_POINTER(capsule, NAME), None)


def lend(array, device_type, device_id):
    """A capsule over an NDArray's memory, which lives until it is given back."""
    own = array.handle.contents
    managed = DLManagedTensor()
    tensor = managed.dl_tensor
    tensor.data, tensor.ndim, tensor.shape = own.data, own.ndim, own.shape
    tensor.device = DLDevice(device_type, device_id)
    tensor.dtype = DLDataType(DLPACK_CODES[array.dtype], array.dtype.itemsize * 8, 1)
    managed.deleter = _give_back
    _LENT[ctypes.addressof(managed)] = (managed, array)
    return _NEW(ctypes.addressof(managed), NAME, _drop)


class Borrowed:
    """The memory of another library's array, given back when nobody needs this object.

    Attributes:
        data: address of the first element.
        shape: a tuple.
        dtype: a numpy dtype.
        device: (device type, number).
    """

    def __init__(self, producer):
        """Takes what `producer.__dlpack__()` lends.

        Raises:
            TypeError: it has no such method, or an NDArray has no such elements.
            ValueError: its elements are not dense and row-major.
        """
        self._managed = None
        if not hasattr(producer, "__dlpack__"):
            raise TypeError("%s has no __dlpack__" % type(producer).__name__)
        capsule = producer.__dlpack__()
        tensor = self._tensor(capsule)
        self.dtype = of_dlpack(tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes)
        self.shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
        if not self._is_dense(tensor):
            raise ValueError("the array is not dense and row-major; hint: make it contiguous first")
        self.data = (tensor.data or 0) + tensor.byte_offset
        self.device = (tensor.device.device_type, tensor.device.device_id)
        self._managed = ctypes.cast(_POINTER(id(capsule), NAME), ctypes.POINTER(DLManagedTensor))
        _RENAME(id(capsule), TAKEN)

    def __del__(self):
        if self._managed is not None and self._managed.contents.deleter:
            self._managed.contents.deleter(self._managed)

    @staticmethod
    def _tensor(capsule):
        if not _VALID(id(capsule), NAME):
            raise TypeError("__dlpack__ returned no new capsule named dltensor")
        address = _POINTER(id(capsule), NAME)
        return ctypes.cast(address, ctypes.POINTER(DLManagedTensor)).contents.dl_tensor

    def _is_dense(self, tensor):
        if not tensor.strides or 0 in self.shape:
            return True
        step = 1
        for i in reversed(range(tensor.ndim)):
            if self.shape[i] > 1 and tensor.strides[i] != step:
                return False
            step *= self.shape[i]
        return True
