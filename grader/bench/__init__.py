"""How fast the solution is on this machine, beside others: what `grader bench` measures and shows.

The solution's package stands on the path from the import of this on. It runs in this process: that
is the kit's own code, never a submission. Measuring needs numpy and nothing else, so that a machine
with a GPU and without a network can do it; the page is made anywhere.

It imports base and report. Start reading in measuring.py.
"""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2] / "solution" / name) for name in ("python", "tests")]
