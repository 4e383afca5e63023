"""`grader bench`: measures the solution on this machine."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rich.console import Console

from grader.building.tree import KIT
from grader.handout.bench import bench

OK = 0

_EXAMPLES = """examples:
  make -C solution && grader bench             into handout/, results.json and results.md
  grader bench --output figures/
  grader bench --data mnist/

It measures the solution as it is built: for a GPU, or for the emulated one.
"""


def add(commands: Any) -> None:
    """Adds the parser."""
    command = commands.add_parser(
        "bench",
        help="measure the solution, as it is built",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("--output", type=Path, default=KIT / "handout", metavar="FOLDER",
                         help="default: handout/")  # fmt: skip
    command.add_argument("--data", metavar="FOLDER", help="MNIST; default: search")
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace, console: Console) -> int:
    with console.status("measuring") as status:
        bench(options.output, options.data, lambda what: status.update(f"measuring {what}"))
    console.print((options.output / "results.md").read_text(), markup=False, highlight=False)
    return OK
