"""Programs whose buffers lie apart, each in memory of its own: what goes past one is told."""

import numpy as np

from dlsys import ndarray
from dlsys.backend import program


def lay_apart(monkeypatch):
    """From now on. An arena hides what a kernel reads or writes beside a buffer."""
    lay_out = program.Program._lay_out

    def apart(self, plan):
        lay_out(self, plan)
        self._apart = {}
        for buffer in list(self._in_arena):
            self._apart[buffer] = ndarray.empty((max(1, buffer.size),), self.ctx, np.dtype(bool))
            self._addresses[buffer] = program.address_of(self._apart[buffer])
            del self._in_arena[buffer]

    monkeypatch.setattr(program.Program, "_lay_out", apart)
