"""`python3 -m grader.bench`: `grader bench` where there is numpy alone."""

from __future__ import annotations

import argparse
import sys

from grader.base.errors import UsageError

from .command import EXAMPLES, add_options, run


def main() -> int:
    """Exit code 0, or 2 for what can't be done."""
    parser = argparse.ArgumentParser(
        prog="python3 -m grader.bench",
        description="Measures the solution on this machine.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_options(parser)
    try:
        written = run(parser.parse_args(), _say)
    except UsageError as error:
        print(f"grader.bench: {error}", file=sys.stderr)
        return 2
    print(*(f"wrote {path}" for path in written), sep="\n")
    return 0


def _say(what: str, share: float) -> None:
    if sys.stderr.isatty():
        print(f"\r{100 * share:3.0f} % {what:60.60}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
