"""The tests of the assignment. Importing this package makes `dlsys` importable."""

import os
import signal
import sys

# Ctrl-C must end a kernel that never ends, which Python by itself would wait for.
signal.signal(signal.SIGINT, signal.SIG_DFL)

sys.path.insert(
    0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "python")
)

if "nose.case" in sys.modules:
    from .second_opinion import watch_nose

    watch_nose()
