"""Grades tests/submissions/, and writes handout/catalogue.md and a table of the guide.

    python3 tools/catalogue_table.py [--device emulated|cuda] [--data MNIST] [NAME ...]
    python3 tools/catalogue_table.py --table-only

Results are kept in tests/submissions/DEVICE.json: a run on another machine, or of some submissions
alone, adds to what is there. Exit code 1 if a submission is missed that should be caught.
"""

import argparse
import json
import multiprocessing
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path

KIT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(KIT), str(KIT / "tests/support"), str(KIT / "tools")]

import catalogue
from grader.course.rubric import load_rubric
from grader.grading.runner import Options, grade
from grader.report.model import PASS

TABLE = KIT / "handout" / "catalogue.md"
#: A part of a chapter of the guide.
SEARCH = KIT / "handout" / "guide" / "second_search.md"
DEVICES = {"emulated": "emulated GPU", "cuda": "real GPU"}
#: Random inputs of the runs in the table; every other run draws its own.
SEED = "ca7a109e"
LONGEST = 150  # characters of a message in the table

INTRODUCTION = """# What the grader catches

{mistakes} honest mistakes and {attacks} tricks, each a small edit of the solution in
`tests/submissions/`, with the check that must fail and the words that its report must contain.

**caught**: the check fails, in these words, or is left open for a person, without points.
**missed**: it passes. *isolated only*: what only a
sandbox can catch, graded on a machine without one.

"""


def all_mutants():
    """Those of every assignment."""
    return [*catalogue.mutants(), *catalogue.mutants(*catalogue.LATER)]


def results_path(device):
    """Where the results of a device are kept."""
    return catalogue.FOLDER / f"{device}.json"


def grade_one(name, device, data, isolated):
    """What came of one submission, as JSON."""
    mutant = next(m for m in all_mutants() if m.name == name)
    if mutant.needs and not isolated:
        return {"verdict": "isolated only", "message": ""}
    rubric, course = mutant.setting
    setup = Options(
        mutant.rubric(rubric), device, data=data, only=mutant.only, seed=SEED, course=course
    )
    with tempfile.TemporaryDirectory() as folder:
        report = grade(catalogue.write(mutant, Path(folder)), setup)
    result = next(r for r in report.results if r.check == mutant.check)
    wrong = mutant.verdict(report)
    verdict = "missed" if result.status == PASS else "other words" if wrong else "caught"
    message = (result.message or wrong).replace(str(KIT), "KIT")
    return {"verdict": verdict, "message": message}


def grade_all(names, device, data, jobs):
    """Yields (name, result), graded side by side, and prints a line for each."""
    isolated, started, count = catalogue.is_isolated(), time.monotonic(), 0
    # What all share is built once, before they start.
    grade(KIT / "assignment", Options(load_rubric("speed"), device, only=("build",)))
    work = partial(grade_one, device=device, data=data, isolated=isolated)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        pending = {pool.submit(work, name): name for name in names}
        for done in as_completed(pending):
            name, result, count = pending[done], done.result(), count + 1
            seconds = time.monotonic() - started
            print(
                f"[{count}/{len(names)}] {seconds:.0f} s, {name}: {result['verdict']}", flush=True
            )
            yield name, result


def cell(text):
    """Text as it may stand between two bars of a table, on one line."""
    line = " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"


def verdict_cell(mutant, result, device):
    """A verdict, with the reason for what is known to be missed."""
    verdict = result["verdict"]
    if verdict == "missed" and mutant.is_missed(device):
        return f"**missed**: {mutant.missed}"
    return "*isolated only*" if verdict == "isolated only" else f"**{verdict}**"


def section(title, mutants, results):
    """A heading and a table."""
    devices = [device for device in DEVICES if results[device]]
    header = ["what is wrong", "check", *[DEVICES[device] for device in devices], "its words"]
    lines = [header, ["---"] * len(header)]
    for mutant in mutants:
        found = [results[device].get(mutant.name) for device in devices]
        verdicts = [
            verdict_cell(mutant, result, device)
            if result
            else "?"
            if mutant.device in ("", device)
            else "–"
            for device, result in zip(devices, found, strict=True)
        ]
        message = next((result["message"] for result in found if result), "")
        what = f"{cell(mutant.title)} (`{mutant.name}`)"
        lines.append([what, f"`{mutant.check}`", *verdicts, cell(message)])
    table = "".join("| " + " | ".join(line) + " |\n" for line in lines)
    return f"\n## {title[0].upper()}{title[1:]}\n\n{table}"


def totals(mutants, results):
    """A line for each device: how many are caught."""
    lines = []
    for device, words in DEVICES.items():
        found = [results[device][m.name]["verdict"] for m in mutants if m.name in results[device]]
        if found:
            counts = [f"{found.count(verdict)} {verdict}" for verdict in sorted(set(found))]
            fitting = sum(mutant.device in ("", device) for mutant in mutants)
            lines.append(f"- {words}: {', '.join(counts)}, of {fitting}.\n")
    return "".join(lines)


def document(mutants, results):
    """The whole text."""
    attacks = [mutant for mutant in mutants if mutant.family]
    text = INTRODUCTION.format(attacks=len(attacks), mistakes=len(mutants) - len(attacks))
    text += totals(mutants, results)
    for family in sorted({mutant.family for mutant in attacks}):
        members = [mutant for mutant in attacks if mutant.family == family]
        text += section(family, members, results)
    rows = [row.name for name in ("speed", *catalogue.LATER) for row in load_rubric(name).rows]
    honest = [mutant for mutant in mutants if not mutant.family]
    honest.sort(key=lambda mutant: (rows.index(mutant.check), mutant.name))
    return text + section("honest mistakes", honest, results)


def of_search(number, mutants):
    """A table of what a search for holes in the grader tried, and what was mended for it."""
    lines = ["| tried | check | held |\n", "|---|---|---|\n"]
    for mutant in mutants:
        if mutant.search == number:
            held = f"no: {mutant.mended}" if mutant.mended else "yes"
            lines.append(f"| {mutant.title} | `{mutant.check}` | {held} |\n")
    return "".join(lines)


def load_results():
    """Device -> name -> result, from the files that there are."""
    paths = {device: results_path(device) for device in DEVICES}
    return {d: json.loads(p.read_text()) if p.exists() else {} for d, p in paths.items()}


def main():
    """Grades, keeps the results, writes the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="submissions; all if none")
    parser.add_argument("--device", choices=DEVICES, default="emulated")
    parser.add_argument("--data", type=Path, help="folder of MNIST")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--table-only", action="store_true", help="grade nothing")
    arguments = parser.parse_args()
    mutants, results = all_mutants(), load_results()
    if not arguments.table_only:
        fitting = [m.name for m in mutants if m.device in ("", arguments.device)]
        names = [name for name in fitting if name in arguments.names or not arguments.names]
        found = results[arguments.device]
        for name in found.keys() - set(fitting):
            del found[name]
        for name, result in grade_all(names, arguments.device, arguments.data, arguments.jobs):
            found[name] = result
            text = json.dumps(dict(sorted(found.items())), indent=1) + "\n"
            results_path(arguments.device).write_text(text)
    TABLE.write_text(document(mutants, results))
    SEARCH.write_text(of_search(2, mutants))
    known = {
        (mutant.name, device)
        for mutant in mutants
        for device in DEVICES
        if mutant.is_missed(device)
    }
    bad = {"missed", "other words"}
    missed = [
        name
        for device, found in results.items()
        for name, result in found.items()
        if (name, device) not in known and result["verdict"] in bad
    ]
    print("missed:", ", ".join(missed) if missed else "none that should be caught")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
