"""`grader bench`: measures the solution on this machine, and makes a page of it."""

from __future__ import annotations

import argparse
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from grader.bench import command as bench

OK = 0


def add(commands: Any) -> None:
    """Adds the parser."""
    command = commands.add_parser(
        "bench",
        help="measure the solution, as it is built",
        epilog=bench.EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    bench.add_options(command)
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace, console: Console) -> int:
    columns = BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("", total=1.0)
        written = bench.run(
            options, lambda what, share: bar.update(task, description=what, completed=share)
        )
    for path in written:
        console.print(f"wrote {path}", markup=False)
    return OK
