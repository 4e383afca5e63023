"""Cancels what a thread of the grader waits for, once nobody needs the thread any more."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator


class Cancelled(BaseException):
    """The thread must stop its work."""


_THREAD = threading.local()


@contextlib.contextmanager
def cancelled_by(stop: threading.Event) -> Iterator[None]:
    """Ends this thread's waits inside with Cancelled, soon after `stop` is set."""
    _THREAD.stop = stop
    try:
        yield
    finally:
        _THREAD.stop = None


def go_on() -> None:
    """Raises Cancelled if this thread must stop its work."""
    stop = getattr(_THREAD, "stop", None)
    if stop is not None and stop.is_set():
        raise Cancelled
