"""What walks over batches hold while their step is called besides, on one thread or on several."""

import contextlib
import threading


class Walk:
    """A walk over batches.

    Attributes:
        found: the values of its last step, a list; None once they were given.
        arrays: node -> array, the feeds that it has taken to run next; None if there are none.
    """

    found = arrays = None

    def set_apart(self, uploads):
        """Copies what the next call overwrites.

        Args:
            uploads: the step's, or None on what is no GPU, where nothing waits.
        """
        if uploads is None:
            return
        if self.found is not None:
            self.found = [each.copyto(each.ctx) for each in self.found]
        if self.arrays is not None:
            self.arrays = {
                node: each.copyto(each.ctx) if uploads.holds(each) else each
                for node, each in self.arrays.items()
            }
            uploads.leave()


class Turns:
    """Whose turn it is: one thread's at a time."""

    def __init__(self, uploads):
        self._lock, self._uploads, self._walk = threading.RLock(), uploads, None

    @contextlib.contextmanager
    def turn(self, walk=None):
        """What the last walk holds is set apart, unless this is its own turn."""
        with self._lock:
            if self._walk not in (None, walk):
                self._walk.set_apart(self._uploads)
            self._walk = walk
            yield

    @contextlib.contextmanager
    def pause(self):
        """Nobody's turn: for what overwrites neither feeds nor results."""
        with self._lock:
            yield
