"""Ends what a thread of the grader waits for, once nobody waits for the thread any more."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator


class Cancelled(BaseException):
    """The thread is to end what it does."""


_THREAD = threading.local()


@contextlib.contextmanager
def cancelled_by(stop: threading.Event) -> Iterator[None]:
    """What this thread waits for inside ends with Cancelled soon after `stop` is set."""
    _THREAD.stop = stop
    try:
        yield
    finally:
        _THREAD.stop = None


def go_on() -> None:
    """Raises Cancelled if this thread is to end what it does."""
    stop = getattr(_THREAD, "stop", None)
    if stop is not None and stop.is_set():
        raise Cancelled
