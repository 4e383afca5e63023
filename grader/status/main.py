"""Says which tasks of a student's folder are done, are failing or are not begun.

    make status                              all tasks
    python3 -m grader.status relu 1.6        some checks, or tasks
    python3 -m grader.status 1               part 1
    python3 -m grader.status --seed 7        other random numbers
    python3 -m grader.status --quick         without the training on MNIST
    make watch                               again whenever a file is saved; Ctrl-C ends it

The checks are the grader's. They run in a process of their own, so that one that crashes or never
ends is told as such, and the others run all the same.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import difflib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from grader.checks.harness.context import Context
from grader.checks.harness.traits import traits_of
from grader.status import here
from grader.status.child import CheckProcess, Interrupted
from grader.status.here import FAIL, PASS, SKIPPED, CheckPlan, Outcome, PlanError, PlannedCheck

DONE, FAILING, NOT_BEGUN, WAITING = "done", "failing", "not begun", "waiting"
_COLOURS = {DONE: "32", FAILING: "31", NOT_BEGUN: "2", WAITING: "33"}
# What stands in a hole that nobody has filled in, see `not_written` of src/cuda_check.h.
_HOLE = re.compile(r'^(?!\s*(?:#|//)).*(?:NotImplementedError\("task |not_written\(")(\d+\.\d+)')
Checks = Mapping[str, Callable[[Context], None]]

_LOOK = 0.3  # seconds from one look at the files to the next
_KNOWN = {"cuda": "on the GPU", "emulated": "on the emulated GPU"}
_TRAINING = ("mnist_numpy", "mnist_gpu")
_NOT_PYTHON = ("SyntaxError", "IndentationError", "TabError")


def main(words: Sequence[str] | None = None) -> int:
    """Runs a command line; returns the exit code: 0 all done, 1 not yet, 2 usage."""
    options = _parse(words)
    folder = Path(options.folder).resolve()
    try:
        plan = here.plan_of(folder)
        checks = here.checks_of(folder)
        rows = _chosen(plan, checks, options)
    except PlanError as error:
        print(error, file=sys.stderr)
        return 2
    if options.serve:
        return _serve(rows, folder, options)
    if options.watch:
        return _watch(folder, plan, sys.argv[1:] if words is None else words)
    holes = holes_of(folder, plan)
    outcomes = {}
    try:
        for outcome in outcomes_of(plan, rows, folder, holes, options.seed):
            outcomes[outcome.check] = outcome
    except Interrupted as stopped:
        print("", *stopped.args, sep="\n  ", file=sys.stderr)
        return 130
    if options.json:
        found = [dataclasses.asdict(outcome) for outcome in outcomes.values()]
        Path(options.json).write_text(json.dumps(found, indent=1), encoding="utf-8")
    _show(plan, rows, outcomes, holes, checks, _device(folder))
    return 0 if all(outcome.status == PASS for outcome in outcomes.values()) else 1


def _parse(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python3 -m grader.status", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument(
        "names", nargs="*", metavar="CHECK", help="checks, tasks or parts; default: all"
    )
    parser.add_argument("--folder", default=".", help="folder of the assignment; default: this one")
    parser.add_argument("--seed", default="local", help="seed of the random numbers")
    parser.add_argument("--quick", action="store_true", help="leave out the training on MNIST")
    parser.add_argument("--json", metavar="FILE", help="write the results there, too")
    parser.add_argument(
        "--watch", action="store_true", help="build and check again after each change"
    )
    parser.add_argument("--serve", type=int, default=0, help=argparse.SUPPRESS)
    return parser.parse_args(words)


def _chosen(plan: CheckPlan, checks: Checks, options: argparse.Namespace) -> list[PlannedCheck]:
    """The checks to run: all, or those named and what they require."""
    known = [row for row in plan.rows if row.name in checks]
    wanted = {row.name for row in known}
    if options.names:
        wanted = {row.name for row in known if not _names_of(row).isdisjoint(options.names)}
        missing = set(options.names) - {name for row in known for name in _names_of(row)}
        if missing:
            raise PlanError(_unknown(min(missing), [row.name for row in known]))
    if options.quick:
        wanted -= set(_TRAINING)
    if not options.serve:
        for row in reversed(known):
            wanted |= set(row.requires) if row.name in wanted else set()
    return [row for row in known if row.name in wanted]


def _names_of(row: PlannedCheck) -> set[str]:
    """The names by which a check can be chosen: its own, its task's, or its part's."""
    return {row.name, row.task, row.task.partition(".")[0]} - {""}


def _unknown(name: str, known: Sequence[str]) -> str:
    """A message that there is no such check, with similar names."""
    near = [each for each in known if name in each]
    near += [each for each in difflib.get_close_matches(name, known, 3, 0.5) if each not in near]
    return f"there is no check, task or part {name!r}; hint: {', '.join(near or known)}"


def _watch(folder: Path, plan: CheckPlan, words: Sequence[str]) -> int:
    """Builds and shows the status, again whenever a file that is handed in has changed."""
    words, seen = [word for word in words if word != "--watch"], None
    try:
        while True:
            paths = [folder / name for name in plan.files]
            now = [path.stat().st_mtime_ns for path in paths if path.exists()]
            if now != seen:
                seen = now
                print("\033[2J\033[H" if sys.stdout.isatty() else "", end="")
                subprocess.run(["make", "-s", f"PYTHON={sys.executable}"], cwd=folder)
                main(words)
                print(f"\nwatching {', '.join(plan.files)}; Ctrl-C ends", flush=True)
            time.sleep(_LOOK)
    except KeyboardInterrupt:
        return 0


def holes_of(folder: Path, plan: CheckPlan) -> dict[str, str]:
    """The tasks whose holes are still there: id -> place, as `src/gpu_op.cu:30`."""
    found: dict[str, str] = {}
    for name in plan.files:
        with contextlib.suppress(OSError):
            text = (folder / name).read_text(encoding="utf-8", errors="replace")
            for number, line in enumerate(text.splitlines(), 1):
                if match := _HOLE.match(line):
                    found.setdefault(match[1], f"{name}:{number}")
    return found


def outcomes_of(
    plan: CheckPlan, rows: Sequence[PlannedCheck], folder: Path, holes: dict[str, str], seed: str
) -> Iterator[Outcome]:
    """The outcomes of the checks, one after the other, in the order of `rows`."""
    broken = here.not_built(folder)
    passed, unimportable = set() if broken else {"build"}, False
    with CheckProcess(folder, seed) as child:
        for number, row in enumerate(rows):
            _progress(f"{row.name} ({number + 1} of {len(rows)})")
            missing = [name for name in row.requires if name not in passed]
            if missing and row.task in holes:
                yield Outcome(row.name, FAIL, f"task {row.task} is not written yet")
            elif missing:
                why = broken if "build" in missing else f"needs {', '.join(missing)}"
                yield Outcome(row.name, SKIPPED, why)
            else:
                outcome = child.run(row, [r.name for r in rows[number:]])
                passed |= {row.name} if outcome.status == PASS else set()
                if _can_not_be_imported(outcome):
                    if unimportable:
                        outcome = Outcome(row.name, SKIPPED, "what it needs can't be imported")
                    unimportable = True
                yield outcome
    _progress("")


def _can_not_be_imported(outcome: Outcome) -> bool:
    """Whether a check failed because the student's package can't be imported: then all checks
    fail."""
    return outcome.message.startswith("import dlsys.") or outcome.raised in _NOT_PYTHON


def _serve(rows: Sequence[PlannedCheck], folder: Path, options: argparse.Namespace) -> int:
    """The child process: runs each check whose name comes in, and answers with its outcome."""
    with open(options.serve, "w", encoding="utf-8") as replies:
        print(file=replies, flush=True)
        for line in sys.stdin:
            outcome = here.run(line.strip(), folder, options.seed)
            sys.stdout.flush()
            replies.write(json.dumps(dataclasses.asdict(outcome)) + "\n")
            replies.flush()
    return 0


def _progress(text: str) -> None:
    """Shows on a terminal which check runs now."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def _device(folder: Path) -> str:
    """What the folder was built for, in words."""
    return here.not_built(folder) or _KNOWN[here.backend_of(folder)]


def _show(
    plan: CheckPlan,
    rows: Sequence[PlannedCheck],
    outcomes: dict[str, Outcome],
    holes: dict[str, str],
    checks: Checks,
    device: str,
) -> None:
    """The table of tasks, then what is wrong, then what to do next."""
    print(f"{plan.title}, {device}\n")
    states = {task: state_of(task, rows, outcomes, holes) for task in plan.tasks}
    for task, state in states.items():
        mine = [row for row in rows if row.task == task]
        if mine:
            score = sum(row.points for row in mine if outcomes[row.name].status == PASS)
            points = f"{score:g}/{sum(row.points for row in mine):g}"
            print(f"  {task:<5} {plan.tasks[task]:<46} {points:>5}  {_coloured(state)}")
    total = sum(row.points for row in rows)
    score = sum(row.points for row in rows if outcomes[row.name].status == PASS)
    print(f"  {'':<5} {'points so far':<46} {f'{score:g}/{total:g}':>5}")
    after = follow(rows, outcomes)
    failed = [row for row in rows if fails(outcomes[row.name])]
    for row in failed:
        if row.name not in after:
            name = f"{row.task} {row.name}".strip()
            print(f"\n{name}: {_sentence(checks[row.name])}")
            print("\n".join(f"  {line}" for line in outcomes[row.name].text().splitlines()))
    if after:
        print(
            f"\nworth no points, and often wrong for the same reason: {', '.join(after)}; "
            "fix the above first"
        )
    if device == _KNOWN["emulated"] and any(traits_of(checks[r.name]).kernels for r in failed):
        print(
            "\nmake check-kernels looks at every access, for races, wrong addresses and "
            "uninitialised memory"
        )
    shown = _next(plan, rows, outcomes, holes, states)
    if shown:
        print(f"\nnext: {shown}")


def _next(
    plan: CheckPlan,
    rows: Sequence[PlannedCheck],
    outcomes: dict[str, Outcome],
    holes: dict[str, str],
    states: Mapping[str, str],
) -> str:
    """What to do next: first what stops everything, then what fails, then what is not begun; "" if
    nothing is left."""
    if any("newer than the library" in outcome.message for outcome in outcomes.values()):
        return "make, and fix compiler errors first"
    if any(_can_not_be_imported(outcome) for outcome in outcomes.values()):
        return "fix the error above that breaks the import of python/dlsys"
    for wanted in (FAILING, NOT_BEGUN):
        for row in rows:
            if states.get(row.task) == wanted:
                what = f"{row.task} {plan.tasks[row.task]}"
                return f"fix {what}" if wanted == FAILING else f"{what}, {holes[row.task]}"
    return ""


def fails(outcome: Outcome) -> bool:
    """Whether a check failed for another reason than an unwritten task."""
    return outcome.status == FAIL and not outcome.is_of_a_hole


def follow(rows: Sequence[PlannedCheck], outcomes: Mapping[str, Outcome]) -> list[str]:
    """The checks without points that failed after a check with points of another task: one mistake
    often fails several."""
    found, tasks = list[str](), set[str]()
    for row in rows:
        if fails(outcomes[row.name]):
            if not row.points and tasks - {row.task}:
                found.append(row.name)
            elif row.points:
                tasks.add(row.task)
    return found


def state_of(
    task: str, rows: Sequence[PlannedCheck], outcomes: dict[str, Outcome], holes: dict[str, str]
) -> str:
    """The state of a task: DONE, FAILING, NOT_BEGUN or WAITING for other tasks."""
    after = follow(rows, outcomes)
    mine = [row.name for row in rows if row.task == task]
    statuses = {SKIPPED if name in after else outcomes[name].status for name in mine}
    if statuses == {PASS}:
        return DONE
    if task in holes:
        return NOT_BEGUN
    return FAILING if FAIL in statuses else WAITING


def _sentence(check: Callable[[Context], None]) -> str:
    """The sentence of a check."""
    return (check.__doc__ or "").strip().partition("\n")[0]


def _coloured(state: str) -> str:
    if not sys.stdout.isatty() or "NO_COLOR" in os.environ:
        return state
    return f"\033[{_COLOURS[state]}m{state}\033[0m"
