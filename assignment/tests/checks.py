"""The grader's checks as tests: one mistake, one failure, its cause first.

A check draws its numbers at random, here from a fixed seed, so that it fails in the same way until
the mistake is fixed; `DLSYS_SEED=7 nosetests` draws others. What is not written yet is skipped,
and so is what needs a check that does not pass.

Checks run in a process of their own: one that crashes or never ends fails, and the next ones run
all the same. With -s, in a debugger and in the checked build they run in the process of the tests,
each for itself. In a debugger, and with `DLSYS_NO_LIMIT=1` for slow tools, they may take any time.
"""

import atexit
import contextlib
import faulthandler
import os
import signal
import sys
import threading
import unittest
from pathlib import Path

from dlsys._base import DeviceError
from grader.status import here
from grader.status.child import CheckProcess

ROOT = Path(__file__).resolve().parent.parent
SEED = os.environ.get("DLSYS_SEED", "local")
#: In the checked build, which looks at every access, sizes are small.
CHECKED = os.environ.get("DLSYS_CHECKED", "") not in ("", "0")
#: Whether a test runs alone, for a second opinion; then what it needs is not asked again.
ALONE = bool(os.environ.get("DLSYS_SECOND_OPINION"))
if not faulthandler.is_enabled():  # a crash names the test; nose does not see to it itself
    with contextlib.suppress(Exception):  # stderr may be no file
        faulthandler.enable(sys.__stderr__)


def check(name):
    """Makes a check of the grader's.

    Raises:
        AssertionError: it fails; the message says what is wrong.
        unittest.SkipTest: it needs a task that is not written yet, or a check that does not pass;
            or the part that it belongs to was not handed out.
    """
    __tracebackhide__ = True
    if name not in {row.name for row in here.plan_of(ROOT).rows}:
        raise unittest.SkipTest("%s is no check of this assignment" % name)
    row = here.check_named(name, ROOT)
    if not (ALONE or CHECKED or is_watched()):
        missing = [other for other in row.requires if other != "build" and not passes(other)]
        if missing:
            raise unittest.SkipTest("needs %s" % ", ".join(missing))
    outcome = outcome_of(row)
    if outcome.is_of_a_hole:
        raise unittest.SkipTest(outcome.message)
    if outcome.status != here.PASS:
        error = DeviceError if outcome.raised == DeviceError.__name__ else AssertionError
        told = error(outcome.text())
        told.used_gpu = "build" in row.requires
        raise told


def passes(name):
    """Whether a check passes, and all that it needs."""
    row = here.check_named(name, ROOT)
    needed = [other for other in row.requires if other != "build"]
    return all(map(passes, needed)) and outcome_of(row).status == here.PASS


def outcome_of(row):
    """What comes of a check; each is made once."""
    if row.name not in _OUTCOMES:
        if CHECKED or is_watched():
            with patience(here.patience_for(row)):
                _OUTCOMES[row.name] = here.run(row.name, ROOT, SEED, CHECKED)
        else:
            _OUTCOMES[row.name] = the_child().run(row, [])
    return _OUTCOMES[row.name]


_OUTCOMES = {}
_CHILDREN = []


def the_child():
    """The process that makes the checks."""
    if not _CHILDREN:
        _CHILDREN.append(CheckProcess(ROOT, SEED))
        atexit.register(_CHILDREN[0].__exit__)
    return _CHILDREN[0]


def is_watched():
    """Whether somebody wants to see, or to stop, the code while it runs."""
    return is_debugged() or bool({"-s", "--capture=no", "--nocapture"} & set(sys.argv))


def is_debugged():
    """Whether a debugger may hold the code for as long as somebody thinks."""
    return bool({"--pdb", "--trace"} & set(sys.argv) or sys.gettrace() or "debugpy" in sys.modules)


@contextlib.contextmanager
def patience(seconds):
    """Raises TimeoutError where Python is that has not ended after so many seconds. An endless
    kernel is stopped by the emulated GPU."""
    if (
        is_debugged()
        or os.environ.get("DLSYS_NO_LIMIT")
        or not hasattr(signal, "setitimer")
        or threading.current_thread() is not threading.main_thread()
    ):
        yield
        return

    def stop(number, frame):
        raise TimeoutError(
            f"it did not end within {seconds:g} s; does each turn of a loop change its condition?"
        )

    earlier = signal.signal(signal.SIGALRM, stop)
    left, _ = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, left)
        signal.signal(signal.SIGALRM, earlier)
