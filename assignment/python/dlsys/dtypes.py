"""The dtypes of arrays on devices: their names in C, and what two of them make together."""

import numpy as np

FLOAT32 = np.dtype(np.float32)
FLOAT64 = np.dtype(np.float64)
FLOAT16 = np.dtype(np.float16)
INT32 = np.dtype(np.int32)
INT64 = np.dtype(np.int64)
UINT8 = np.dtype(np.uint8)
BOOL = np.dtype(np.bool_)

try:
    import ml_dtypes

    BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
except ImportError:  # numpy alone has none
    BFLOAT16 = None

#: What a kernel calls it.
C_NAMES = {
    FLOAT32: "float",
    FLOAT64: "double",
    FLOAT16: "Half",
    INT32: "int32_t",
    INT64: "int64_t",
    UINT8: "uint8_t",
    BOOL: "bool",
    **({BFLOAT16: "BFloat16"} if BFLOAT16 else {}),
}

#: DLPack's code of a dtype's kind; with the number of bits it says which dtype it is.
DLPACK_CODES = {
    FLOAT32: 2,
    FLOAT64: 2,
    FLOAT16: 2,
    INT32: 0,
    INT64: 0,
    UINT8: 1,
    BOOL: 6,
    **({BFLOAT16: 4} if BFLOAT16 else {}),
}

#: Those with a fraction.
FLOATS = frozenset(each for each in (FLOAT32, FLOAT64, FLOAT16, BFLOAT16) if each)

#: Those that a kernel computes with: halves are widened when they are read.
_WIDENED = {FLOAT16: FLOAT32, BFLOAT16: FLOAT32}


def checked(dtype):
    """The numpy dtype that `dtype` names, in this machine's order of bytes.

    Raises:
        TypeError: a device has no such arrays.
    """
    if dtype == "bfloat16" and BFLOAT16 is None:
        raise TypeError("bfloat16 needs ml_dtypes; hint: python3 -m pip install ml_dtypes")
    found = BFLOAT16 if dtype == "bfloat16" else np.dtype(dtype).newbyteorder("=")
    if found not in C_NAMES:
        names = ", ".join(each.name for each in C_NAMES)
        raise TypeError("arrays of %s are not for a device; hint: %s" % (found, names))
    return found


def numbers(what, value):
    """An array-like as a numpy array in this machine's order of bytes.

    Args:
        what: it is, for an error.

    Raises:
        TypeError: it is ragged, or of objects, text, times or complex numbers.
    """
    try:
        found = np.asarray(value)
        if found.dtype.kind not in "biuf" and found.dtype not in FLOATS:
            raise TypeError("its dtype is %s" % found.dtype)
    except (TypeError, ValueError) as error:
        raise TypeError(
            "%s is no array of numbers: %s; hint: numpy.asarray(value, float)" % (what, error)
        ) from None
    return found if found.dtype.isnative else found.astype(found.dtype.newbyteorder("="))


def of_dlpack(code, bits, lanes):
    """The dtype of a DLPack array.

    Raises:
        TypeError: an NDArray has none such.
    """
    for dtype, known in DLPACK_CODES.items():
        if (known, dtype.itemsize * 8, 1) == (code, bits, lanes):
            return dtype
    names = ", ".join(each.name for each in C_NAMES)
    raise TypeError("an NDArray has no elements of that type; hint: convert to one of %s" % names)


def computed_in(dtype):
    """The dtype in which a kernel computes what is kept in `dtype`."""
    return _WIDENED.get(dtype, dtype)


def promoted(dtypes):
    """The dtype of an operation on these: numpy's rule; bfloat16 counts as float16 does.

    Two different halves make a float32.
    """
    known = set(dtypes)
    if BFLOAT16 in known:
        others = known - {BFLOAT16}
        if FLOAT16 in others:
            return promoted({FLOAT32, *others})
        found = np.result_type(FLOAT16, *others)
        return BFLOAT16 if found == FLOAT16 else found
    return np.result_type(*known)
