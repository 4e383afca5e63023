"""What `grader bench` does: the options, and what is measured and written by them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from .built import KIT, BenchError

#: The parts that are measured unless others are asked for, and one for the handout's figures.
PARTS, HANDOUT = ("nets", "blocks", "ops"), "handout"

EXAMPLES = """examples:
  make bench                                  100 seconds; then open build/bench/bench.html
  grader bench --quick                        in a quarter of a minute
  grader bench --only nets                    one part: nets, blocks (threads a block), ops
  grader bench --json h100.json               measure, and make no page
  python3 -m grader.bench --json h100.json    the same on a machine that has numpy alone
  grader bench --page h100.json here.json     one page of several machines
  grader bench --only handout --output handout/   results.json and results.md of the handout

It measures the solution as it is built: for a GPU, or for the emulated one. PyTorch and JAX are
timed beside it where they are installed. What would take too long is left out; the page says so.
"""


def add_options(command: argparse.ArgumentParser) -> None:
    """Adds the options to a parser."""
    command.add_argument("--quick", action="store_true", help="fewer and smaller sizes")
    command.add_argument("--only", nargs="+", metavar="PART", choices=(*PARTS, HANDOUT),
                         help=f"parts to measure: {', '.join((*PARTS, HANDOUT))}")  # fmt: skip
    command.add_argument("--seconds", type=float, metavar="S",
                         help="how long all of it may take; default: 100, quick: 45")  # fmt: skip
    command.add_argument("--json", type=Path, metavar="FILE",
                         help="write what was measured there, and no page")  # fmt: skip
    command.add_argument("--page", type=Path, nargs="+", metavar="FILE",
                         help="measure nothing; make the page of these files")  # fmt: skip
    command.add_argument("--output", type=Path, default=KIT / "build" / "bench", metavar="FOLDER",
                         help="for bench.json and bench.html; default: build/bench/")  # fmt: skip
    command.add_argument("--data", metavar="FOLDER", help="MNIST, for the handout; default: search")


def run(options: argparse.Namespace, say: Callable[[str, float], None]) -> list[Path]:
    """Measures or makes a page; returns what was written.

    Args:
        say: is told what is measured next, and which part of all is done.

    Raises:
        BenchError: there is nothing to measure, or no page can be made.
    """
    target = options.output / "bench.html"
    if options.page:
        return [_page(options.page, target)]
    parts = tuple(part for part in (*PARTS, HANDOUT) if part in (options.only or PARTS))
    written = _handout(options, say) if HANDOUT in parts else []
    parts = tuple(part for part in parts if part != HANDOUT)
    if not parts:
        return written
    measured = _measured(options, parts, say)
    written.append(measured)
    if options.json:
        return written
    try:
        return [*written, _page([measured], target)]
    except BenchError as error:
        raise BenchError(f"{measured} is written; {error}") from None


def _handout(options: argparse.Namespace, say: Callable[[str, float], None]) -> list[Path]:
    from . import classic

    classic.bench(options.output, options.data, lambda what: say(what, 0.0))
    return [options.output / "results.json", options.output / "results.md"]


def _measured(
    options: argparse.Namespace, parts: tuple[str, ...], say: Callable[[str, float], None]
) -> Path:
    from . import measuring

    plan = replace(measuring.QUICK if options.quick else measuring.Plan(), parts=parts)
    if options.seconds:
        plan = replace(plan, total=options.seconds)
    result = measuring.measured(plan, say)
    path: Path = options.json or options.output / "bench.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_text(result))
    return path


def _text(result: dict[str, Any]) -> str:
    """JSON with a line for each point."""
    points = result.pop("points")
    facts = json.dumps(result, indent=1).rstrip("\n}")
    lines = ",\n  ".join(json.dumps(point) for point in points)
    return f'{facts},\n "points": [\n  {lines}\n ]\n}}\n'


def _page(paths: list[Path], target: Path) -> Path:
    from . import page

    page.write(paths, target)
    return target
