"""A second opinion on a test that fails on the emulated GPU: is the test wrong, or the GPU?

The emulated GPU runs most kernels in a fast form, which is made by a program that may be wrong. Its
plain form calls your kernel thread by thread. So a test that fails runs once more in a new process,
thread by thread, with EMULATOR_LOOPS=0. Where it passes so, in two orders of the threads, and fails
in a new process in the fast form as well, the failure is that form's, and no mistake of yours: the
test ends with NotYourMistake, which says what to do.

`conftest.py` asks for pytest, `watch_nose` for nosetests. Nobody is asked where a test used no GPU,
on a real GPU, in the checked build, with EMULATOR_LOOPS or EMULATOR_SHUFFLE in the environment, or
where a kernel does not end: the emulated GPU has tried that thread by thread already.
"""

import ctypes
import os
import re
import subprocess
import sys
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
#: Set in the environment of a test that runs again, which asks nobody.
AGAIN = "DLSYS_SECOND_OPINION"
#: Seconds for one run of a test, and for all runs.
ONE_RUN, ALL_RUNS = 120.0, 240.0

MESSAGE = """
This test fails, and run thread by thread it passes. That is an error of the emulated GPU's fast
form: NOT YOUR MISTAKE. The test counts as passed for you; the grader asks twice as well, and where
it finds the same, it costs you no points.
  first:   make check-kernels. If it finds a race, that is the reason, and yours to fix.
  send:    src/gpu_op.cu and this output to your instructor, with what this prints:
           python3 emulator/emucc.py --explain src/gpu_op.cu
  go on:   EMULATOR_LOOPS=0 make test
The fast form: %s"""


#: What the emulated GPU says of a kernel that did not end thread by thread, either.
ENDLESS = re.compile(r"thread \(\d+, \d+, \d+\): it did not end")


class NotYourMistake(Exception):
    """The emulated GPU is wrong, and not the test."""


class _Clock:
    """The seconds that are left for all runs."""

    left = ALL_RUNS


def is_emulated():
    """Whether the library was built for the emulated GPU."""
    try:
        with open(os.path.join(ROOT, "build", "config.mk"), encoding="utf-8") as file:
            return re.search(r"^BACKEND := emulated$", file.read(), re.M) is not None
    except OSError:
        return False


def used_gpu():
    """Whether this process has allocated memory on the GPU."""
    from dlsys._base import _LIB, DeviceError

    arrays, raw = ctypes.c_int64(), ctypes.c_int64()
    try:
        _LIB.DLGetAllocationCounts(ctypes.byref(arrays), ctypes.byref(raw))
    except DeviceError:  # there is no library
        return False
    return arrays.value + raw.value > 0


def is_wanted(error):
    """Whether somebody is asked about a test that ended with `error`."""
    if isinstance(error, (NotImplementedError, unittest.SkipTest)):  # a hole of the assignment
        return False
    if ENDLESS.search(str(error)):
        return False
    names = (AGAIN, "DLSYS_CHECKED", "EMULATOR_LOOPS", "EMULATOR_SHUFFLE")
    if any(os.environ.get(name) for name in names):
        return False
    return is_emulated() and (getattr(error, "used_gpu", False) or used_gpu())


def passes(command, **variables):
    """Whether a command that runs one test succeeds, with more variables in its environment."""
    env = {name: text for name, text in os.environ.items() if name != "PYTEST_ADDOPTS"}
    env.update(variables, **{AGAIN: "1"})
    started = time.monotonic()
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=env, timeout=min(ONE_RUN, _Clock.left),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return False
    finally:
        _Clock.left -= time.monotonic() - started
    return done.returncode == 0


def judged(error, command):
    """NotYourMistake if the emulated GPU is to blame for `error`, else `error` itself.

    Args:
        error: what the test ended with.
        command: runs the test alone.
    """
    if not is_wanted(error) or _Clock.left < 1:
        return error
    by_thread = {"EMULATOR_LOOPS": "0"}
    if not passes(command, **by_thread) or passes(command):
        return error  # the plain form agrees; or what an earlier test has left is to blame
    if not passes(command, EMULATOR_SHUFFLE="7", **by_thread):
        return error  # the order of the threads matters: a race
    return NotYourMistake(MESSAGE % (str(error).strip() or type(error).__name__))


def watch_nose():
    """Has nosetests ask about each test function that fails."""
    from nose.case import FunctionTestCase

    from . import failed_device

    plainly = FunctionTestCase.runTest

    def run_test(self):
        try:
            plainly(self)
        except Exception as error:
            name = "%s:%s" % (self.test.__code__.co_filename, self.test.__name__)
            told = judged(error, [sys.executable, "-m", "nose", name])
            told = failed_device.error_of(self.test.__name__, told)
            if told is error:
                raise
            raise told from error

    FunctionTestCase.runTest = run_test
