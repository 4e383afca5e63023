"""Tasks for tests of the engine; other processes import them by name."""

import os
import signal
import time
from pathlib import Path


def double(number):
    return 2 * number


def refuse_odd(number):
    if number % 2:
        raise ValueError(f"{number} is odd")
    return number


def die_on_three(number):
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.05)
    return number


def die_once(place):
    """Dies where it runs first: the file at `place` tells that it did."""
    path = Path(place)
    if not path.exists():
        path.write_text("")
        os.kill(os.getpid(), signal.SIGKILL)
    return "alive"


def process_and_variable(_):
    time.sleep(0.2)
    return os.getpid(), os.environ.get("CUDA_VISIBLE_DEVICES"), os.environ.get("KIT_WORD")


def where(_):
    time.sleep(0.3)
    return os.getpid()
