"""The log of a run: a JSON object a line, of each step and of each epoch."""

import contextlib
import json
import os

from dlsys.step.files import write_at_once


class Log:
    """Lines in memory and in a file, which may have been cut off anywhere.

    Attributes:
        lines: dictionaries, each with "step": how many had been made.
    """

    def __init__(self, path, steps):
        """
        Args:
            path: of the file; there need be none.
            steps: of the checkpoint. Later lines are dropped: these steps are made again.
        """
        self._path = path
        self.lines = [line for line in _whole_lines(path) if line["step"] <= steps]
        kept = "".join(json.dumps(line) + "\n" for line in self.lines)
        write_at_once(str(path), kept.encode())
        self._file = open(path, "a", encoding="utf-8")

    def add(self, **line):
        """Adds a line."""
        self.lines.append(line)
        self._file.write(json.dumps(line) + "\n")

    def flush(self):
        """What has been added is on the disk when it returns."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self):
        """Ends it; what can't be written any more is lost."""
        with contextlib.suppress(OSError):
            self._file.close()

    def steps(self):
        """The lines of steps."""
        return [line for line in self.lines if "epoch" not in line]

    def epochs(self):
        """The lines of epochs."""
        return [line for line in self.lines if "epoch" in line]


def _whole_lines(path):
    """The lines of a file, up to the first that is not whole."""
    if not path.exists():
        return
    for line in path.read_bytes().split(b"\n")[:-1]:
        try:
            found = json.loads(line)
        except ValueError:
            return
        if not (isinstance(found, dict) and {"step", "loss"} <= found.keys()):
            return
        yield found
