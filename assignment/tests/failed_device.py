"""Has the GPU work again after a test in which a kernel failed.

After an illegal access, or a kernel that never ends, every call of CUDA fails. The emulated GPU is
reset then, and the next test has a working one. A real GPU works again in a new process alone: the
tests that need it are skipped, and say so.
"""

import unittest

from dlsys._base import _LIB, DeviceError, check_call, reset_device

from .second_opinion import used_gpu


class _Lost:
    """Why the GPU does not work any more, or "" if it does."""

    reason = ""


def error_of(test, error):
    """What a test ends with that raised `error`: a skip, if an earlier one has lost the GPU.

    Args:
        test: its name.
        error: what it raised.
    """
    if _Lost.reason and isinstance(error, DeviceError):
        return unittest.SkipTest(_Lost.reason)
    try:
        recover()
    except DeviceError as reason:
        what = str(reason).partition("\n")[0]
        _Lost.reason = (
            "the GPU does not work since %s, but works in a new process (%s); hint: fix "
            "that one first, or run this test alone" % (test, what)
        )
    return error


def recover():
    """Resets the device if its calls fail.

    Raises:
        DeviceError: they go on failing.
    """
    if not used_gpu():
        return
    try:
        check_call(_LIB.DLDeviceSynchronize(b"the GPU"))
    except DeviceError:
        reset_device()
