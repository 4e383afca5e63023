"""What the host calls on a GPU beside kernels: recordings, uploads, pinned memory."""

import ctypes
import functools

from . import gpu, kernels

_WHOLE, _ADDRESS, _INT = ctypes.c_int64, ctypes.c_void_p, ctypes.c_int

#: The result of each function of gpu.HOST, then its parameters.
_KINDS = {
    "begin_recording": (_ADDRESS, _WHOLE, _WHOLE),
    "record": (_WHOLE, _ADDRESS, _ADDRESS, _WHOLE, _ADDRESS, _ADDRESS, _WHOLE),
    "record_rows": (_INT, _ADDRESS, _ADDRESS, _WHOLE, _ADDRESS, _WHOLE, _WHOLE, _WHOLE),
    "end_recording": (_ADDRESS, _ADDRESS, _ADDRESS),
    "replay": (_INT, _ADDRESS),
    "release": (_INT, _ADDRESS),
    "make_uploads": (_ADDRESS,),
    "settle": (_INT, _ADDRESS),
    "fill": (_INT, _ADDRESS, _INT, _WHOLE, _ADDRESS, _ADDRESS, _ADDRESS),
    "leave": (_INT, _ADDRESS, _INT),
    "end_uploads": (None, _ADDRESS),
    "make_look": (_ADDRESS, _WHOLE),
    "begin_look": (_INT, _ADDRESS, _ADDRESS),
    "seen": (_ADDRESS, _ADDRESS),
    "end_look": (None, _ADDRESS),
    "name_device": (_INT, ctypes.c_char_p, _WHOLE),
    "pin": (_ADDRESS, _WHOLE),
    "unpin": (_INT, _ADDRESS),
}


@functools.cache
def functions():
    """name -> function, of gpu.HOST.

    Raises:
        kernels.CompileError: there is no compiler.
    """
    places = kernels.kernels(gpu, [("host", name) for name in _KINDS])
    return {
        name: ctypes.CFUNCTYPE(*kind)(place)
        for (name, kind), place in zip(_KINDS.items(), places, strict=True)
    }
