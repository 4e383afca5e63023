"""Finds and loads the C runtime, and turns its return codes into Python exceptions."""

import ctypes
import os

#: What a C function returns when its body is still a hole of the assignment.
NOT_WRITTEN = -2

#: Whether to use the build that checks every access of a kernel, and is slow.
CHECKED = os.environ.get("DLSYS_CHECKED", "") not in ("", "0")


class DeviceError(AssertionError):
    """The C runtime, or the device behind it, refused or failed.

    An AssertionError, because that is what the classic package raised here.
    """


class _MissingLibrary:
    """Stands in for the library, so that numpy mode works where it can't be loaded."""

    def __init__(self, reason):
        self._reason = reason

    def __getattr__(self, name):
        raise DeviceError(self._reason)

    __getitem__ = __getattr__


def find_lib_path():
    """Path of libc_runtime_api.so: build/lib of the folder that holds python/.

    With DLSYS_CHECKED=1 in the environment it is build/checked/lib, which `make checked` builds.
    """
    package = os.path.dirname(os.path.abspath(os.path.expanduser(__file__)))
    folder = os.path.join("checked", "lib") if CHECKED else "lib"
    return os.path.normpath(
        os.path.join(package, "..", "..", "build", folder, "libc_runtime_api.so")
    )


def _load_lib(path):
    if not os.path.exists(path):
        target = "make checked" if CHECKED else "make"
        return _MissingLibrary("%s does not exist; hint: run %s" % (path, target))
    try:
        lib = ctypes.CDLL(path, ctypes.RTLD_GLOBAL)
    except OSError as error:
        return _MissingLibrary("%s does not load: %s; hint: run make again" % (path, error))
    lib.DLGetLastError.restype = ctypes.c_char_p
    return lib


#: The C runtime. Without one, every use of it raises DeviceError with a hint.
_LIB = _load_lib(find_lib_path())


def last_error():
    """The message of the last C function that failed in this thread, as str."""
    return _LIB.DLGetLastError().decode("utf-8", "replace")


def check_call(ret):
    """Raises if a C function did not return 0.

    Raises:
        NotImplementedError: the function is a hole of the assignment, not filled in yet.
        DeviceError: anything else, with the runtime's own message.
    """
    if ret == 0:
        return
    if ret == NOT_WRITTEN:
        raise NotImplementedError(last_error())
    raise DeviceError(last_error() or "a C function returned %r" % (ret,))


def reset_device():
    """Has the GPU work again after a kernel that failed; what lay in its memory is lost.

    Raises:
        DeviceError: it goes on failing, as a real GPU does until the process ends.
    """
    check_call(_LIB.DLDeviceReset())


def c_array(ctype, values):
    """A ctypes array of len(values) elements of `ctype`."""
    return (ctype * len(values))(*values)
