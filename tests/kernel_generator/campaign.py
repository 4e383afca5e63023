"""Runs many seeds on several cores, can be stopped and continued, and adds up what was seen."""

import json
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path

from . import changes, declarations, exchanges, functions, macros, struct_changes, warps
from .kernel import make_kernel
from .runner import Disagreement, Report, Runner

COUNTERS = ("ways", "reasons", "productions", "broken")
KNOWN = (
    [f"change {name}" for name in changes.WAYS]
    + [f"macro {name}" for name in macros.MACROS]
    + [f"declaration {name}" for name in declarations.FORMS]
    + [f"call {name}" for name in functions.CALLS]
    + [f"exchange {name}" for name in {**exchanges.EXCHANGES, **warps.WARPS}]
    + [f"member function {name}" for name in struct_changes.METHODS]
)


def as_line(first, report):
    """A line of the file of results."""
    line = {name: dict(getattr(report, name)) for name in COUNTERS}
    line.update(first=first, kernels=report.kernels, launches=report.launches)
    line["disagreements"] = [asdict(d) for d in report.disagreements]
    line["hashes"] = [f"{seed} {launch} {value}" for (seed, launch), value in report.hashes.items()]
    return json.dumps(line)


def of_line(text):
    """(first seed, Report) of a line."""
    line = json.loads(text)
    report = Report(line["kernels"], line["launches"])
    report.disagreements = [Disagreement(**d) for d in line["disagreements"]]
    for name in COUNTERS:
        setattr(report, name, Counter(line[name]))
    return line["first"], report


def run_batch(folder, first, last, options):
    """The line for the seeds first .. last - 1; runs in a process of its own."""
    number = first // max(last - first, 1)
    checked = options["checked_every"] and number % options["checked_every"] == 0
    clang = options["clang_every"] and number % options["clang_every"] == options["clang_every"] - 1
    runner = Runner(Path(folder), ["clang++"] if clang else None, checked=bool(checked))
    kernels = [make_kernel(seed) for seed in range(first, last)]
    report = runner.run(kernels, f"batch{first}")
    if checked:
        report.ways["(also by the checked build)"] += len(kernels)
    if clang:
        report.ways["(built by clang)"] += len(kernels)
    return as_line(first, report)


def stored(path):
    """{first seed: Report} of a file of results; a line that was cut off is left out."""
    found = {}
    if path.exists():
        for line in path.read_text().splitlines():
            if line.endswith("}"):
                first, report = of_line(line)
                found[first] = report
    return found


def run(folder, first, last, options, jobs, batch, say=print):
    """Runs the seeds first .. last - 1 that have no result yet; returns the Report of all."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    results, failures = folder / "results.jsonl", folder / "failures.jsonl"
    done, total = stored(results), Report()
    for report in done.values():
        total.add(report)
    starts = [start for start in range(first, last, batch) if start not in done]
    begun, before = time.monotonic(), total.kernels
    if starts:
        Runner(folder, checked=bool(options["checked_every"]))  # builds the libraries, once
    with ProcessPoolExecutor(jobs) as pool, open(results, "a") as out, open(failures, "a") as bad:
        tasks = [pool.submit(run_batch, folder, s, min(s + batch, last), options) for s in starts]
        for task in as_completed(tasks):
            line = task.result()
            out.write(line + "\n")
            out.flush()
            report = of_line(line)[1]
            total.add(report)
            for found in report.disagreements:
                bad.write(json.dumps(asdict(found)) + "\n")
            bad.flush()
            rate = (total.kernels - before) / (time.monotonic() - begun) * 60
            say(
                f"\r{total.kernels} of {last - first} kernels, {rate:.0f} a minute, "
                f"{len({d.seed for d in total.disagreements})} disagree",
                end="",
                flush=True,
            )
    if starts:
        say()
    return total


def hashes(folder):
    """The lines "seed hash hash digest" of all results that agree, in order, for gpu.py."""
    from .gpu import digest

    values, bad = {}, set()
    for text in (Path(folder) / "results.jsonl").read_text().splitlines():
        line = json.loads(text)
        bad |= {d["seed"] for d in line["disagreements"]}
        for entry in line["hashes"]:
            seed, launch, value = entry.split(None, 2)
            values.setdefault(int(seed), {})[int(launch)] = value
    return [
        f"{seed} {of[0]} {of[1]} {digest(make_kernel(seed))}"
        for seed, of in sorted(values.items())
        if seed not in bad and len(of) == 2 and not any(" " in value for value in of.values())
    ]


def summary(total, productions=False):
    """What was run, how, and what disagreed, as text."""
    kinds = Counter(d.kind for d in total.disagreements)
    lines = [f"{total.kernels} kernels, {total.launches} launches"]
    lines += [f"  {count:7} {way}" for way, count in total.ways.most_common()]
    lines += ["thread by thread because of:"] * bool(total.reasons)
    lines += [f"  {count:7} {reason}" for reason, count in total.reasons.most_common(40)]
    lines += [f"{len({d.seed for d in total.disagreements})} kernels disagree"]
    lines += [f"  {count:7} {kind}" for kind, count in kinds.most_common()]
    dead = [name for name in KNOWN if not total.productions[name]]
    if productions:
        lines += ["productions: times used, kernels with it that disagree"]
        for name, count in sorted(total.productions.items()):
            lines.append(f"  {count:8} {total.broken[name]:6}  {name}")
    lines.append("productions that were never used: " + (", ".join(dead) or "none"))
    return "\n".join(lines)
