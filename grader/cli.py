"""The command `grader`."""

from __future__ import annotations

import argparse
import sys
import traceback
from pathlib import Path

from rich.console import Console

from grader import __version__
from grader.bench import bench
from grader.build import KIT, PRISTINE
from grader.isolation import LEVELS, IsolationError
from grader.release import ReleaseError, release, stale
from grader.report import show_report, show_result
from grader.rubric import RubricError, load_rubric, profiles
from grader.runner import GraderError, Options, grade

OK, FELL_SHORT, USAGE, GRADER_FAILED = 0, 1, 2, 3

_EXAMPLES = """examples:
  grader grade solution                       grade a folder
  grader grade work.tar.gz --json out.json    grade an archive, keep the report
  grader grade work.zip --profile classic     by the published rubric and recipe
  grader grade work --only relu --only softmax
  grader release                              regenerate assignment/ from solution/
  grader release --check                      say whether it is fresh
  grader release --part 2 --output classic/   holes in part 2 alone
  grader bench                                measure the solution on this machine's GPU

exit codes: 0 as it should be, 1 the submission fell short, 2 usage, 3 the grader failed
"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="grader",
        description="Grades submissions, and makes what students receive.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"grader {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    _add_grade(commands)
    _add_release(commands)
    _add_bench(commands)
    return parser


def _add_grade(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser("grade", help="grade one submission")
    command.add_argument("submission", type=Path, help="a folder, .tar.gz or .zip")
    command.add_argument("--profile", default="default", help=f"rubric: {', '.join(profiles())}")
    command.add_argument("--device", default="auto", choices=["auto", "cuda", "emulated"])
    command.add_argument("--only", action="append", default=[], metavar="CHECK",
                         help="run this check and what it requires; may be repeated")  # fmt: skip
    command.add_argument("--json", type=Path, metavar="FILE", help="write the report there")
    command.add_argument("--seed", default="", help="the secret of the run, hex; default: new")
    command.add_argument("--data", type=Path, metavar="FOLDER", help="MNIST; default: search")
    command.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the built tree there")
    command.add_argument("--isolation", default="auto", choices=["auto", *LEVELS],
                         help="how student code is contained; default: the best here")  # fmt: skip
    command.set_defaults(run=_grade)


def _add_release(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser("release", help="make the students' skeleton from solution/")
    command.add_argument("--part", type=int, action="append", metavar="N",
                         help="strip this part alone; may be repeated; default: all")  # fmt: skip
    command.add_argument("--output", type=Path, default=PRISTINE, help="default: assignment/")
    command.add_argument("--check", action="store_true", help="only say whether it is fresh")
    command.set_defaults(run=_release)


def _add_bench(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser("bench", help="measure the solution, as it is built")
    command.add_argument("--output", type=Path, default=KIT / "handout", metavar="FOLDER")
    command.add_argument("--data", metavar="FOLDER", help="MNIST; default: search")
    command.set_defaults(run=_bench)


def _grade(options: argparse.Namespace, console: Console) -> int:
    rubric = load_rubric(options.profile)
    problem = _unusable(options)
    if problem:
        print(f"grader: {problem}", file=sys.stderr)
        return USAGE
    settings = Options(
        rubric=rubric,
        device=options.device,
        seed=options.seed,
        data=options.data,
        only=tuple(options.only),
        output=options.json,
        keep=options.keep,
        isolation=options.isolation,
    )
    with console.status("building the kit; the first time takes a minute") as status:

        def show(result: object) -> None:
            status.update("checking")
            show_result(console, result)  # type: ignore[arg-type]

        report = grade(options.submission, settings, show)
    show_report(console, report)
    if report.has_errors:
        return GRADER_FAILED
    return OK if report.score == report.points and not report.problem else FELL_SHORT


def _unusable(options: argparse.Namespace) -> str:
    """What is wrong with the paths on the command line, or ""."""
    if not options.submission.exists():
        return f"{options.submission} does not exist"
    if options.data and not options.data.is_dir():
        return f"--data {options.data} is no folder"
    for name in ("json", "keep"):
        path = getattr(options, name)
        folder = path.parent if path and name == "json" else path
        if folder and folder.exists() and not folder.is_dir():
            return f"--{name} {path}: {folder} is no folder"
    if options.json:
        try:
            options.json.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            return f"--json {options.json}: {error}"
    return ""


def _release(options: argparse.Namespace, console: Console) -> int:
    source = KIT / "solution"
    rubric = load_rubric("default")
    parts = set(options.part) if options.part else None
    unknown = sorted((parts or set()) - set(rubric.parts))
    if unknown:
        known = ", ".join(map(str, rubric.parts))
        print(f"grader: there is no part {unknown[0]}; hint: one of {known}", file=sys.stderr)
        return USAGE
    tasks = set(rubric.tasks)
    if options.check:
        differences = stale(source, options.output, parts)
        for line in differences:
            console.print(line, highlight=False, markup=False)
        return FELL_SHORT if differences else OK
    files = release(source, options.output, parts, tasks)
    console.print(f"{len(files)} files in {options.output}", highlight=False, markup=False)
    return OK


def _bench(options: argparse.Namespace, console: Console) -> int:
    with console.status("measuring") as status:
        bench(options.output, options.data, lambda what: status.update(f"measuring {what}"))
    console.print((options.output / "results.md").read_text(), markup=False, highlight=False)
    return OK


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    options = _parser().parse_args(arguments)
    console = Console(highlight=False, soft_wrap=True)
    try:
        return int(options.run(options, console))
    except (RubricError, ReleaseError, IsolationError) as error:
        print(f"grader: {error}", file=sys.stderr)
        return USAGE
    except (GraderError, OSError) as error:
        print(f"grader: {error}", file=sys.stderr)
        return GRADER_FAILED
    except KeyboardInterrupt:
        print("grader: interrupted", file=sys.stderr)
        return GRADER_FAILED
    except Exception:  # never the exit code of a submission that fell short
        traceback.print_exc()
        return GRADER_FAILED


if __name__ == "__main__":
    sys.exit(main())
