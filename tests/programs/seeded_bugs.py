"""Runs the seeded bugs in the checked build, and says which are found, and at which line.

python3 tests/programs/seeded_bugs.py [NAME]           the bugs whose name contains NAME
"""

import argparse
import dataclasses
import os
import shutil
import sys
import tempfile
from pathlib import Path

import emulated_programs
import program_manifest
from program_manifest import PROGRAMS


def edited_program(bug, folder):
    """The program with the bug, whose files lie in a folder of its own."""
    program = next(p for p in program_manifest.programs() if p.name == bug.program)
    copied = folder / bug.name
    shutil.rmtree(copied, ignore_errors=True)
    copied.mkdir(parents=True)
    # Headers are found as beside the original: those of all programs, and the program's own.
    shutil.copytree(PROGRAMS / "headers", copied / "headers")
    for path in {bug_file.parent for bug_file in program.sources} - {PROGRAMS}:
        shutil.copytree(path, copied / path.name)
    for source in program.sources:
        shutil.copy(source, copied / source.relative_to(PROGRAMS))
    (copied / bug.file).write_text(bug.edited())
    sources = tuple(copied / source.relative_to(PROGRAMS) for source in program.sources)
    return dataclasses.replace(program, name=bug.name, sources=sources)


def lines_of(finding):
    """The lines that a finding names; that of the launch if it knows no other."""
    places = [finding.at, finding.other and finding.other.at]
    if finding.kind == "leak" and finding.memory:
        places.append(finding.memory.allocated)
    if not any(places):
        places.append(finding.launch)
    return {(Path(place.file).name, place.line) for place in places if place}


def verdict(bug, findings):
    """None if the bug is found at its line; else what is found instead, as text."""
    wrong = [finding for finding in findings if not finding.is_advice]
    wanted = (Path(bug.file).name, bug.line_number())
    for finding in wrong:
        if finding.kind in bug.kinds and wanted in lines_of(finding):
            return None
    said = [f"{f.kind} at {sorted(lines_of(f))}" for f in wrong]
    return f"wanted {' or '.join(bug.kinds)} at {wanted}, found {said or 'nothing'}"


def result(bug, kit, folder):
    """None if the checked build finds a bug at its line; else what it says."""
    program = edited_program(bug, folder)
    try:
        kit.build(program)
    except emulated_programs.BuildError as error:
        return f"does not build: {error}"
    run = kit.run_program(program)
    missed = verdict(bug, run.findings)
    return f"{missed} (exit status {run.status}: {run.stderr[-200:]})" if missed else None


def main():
    """Runs what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="?", default="")
    parser.add_argument("--keep", type=Path, help="where to build, and to keep what was built")
    arguments = parser.parse_args()
    chosen = [bug for bug in program_manifest.bugs() if arguments.name in bug.name]
    missed = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        kit = emulated_programs.kits(folder, ["checked"])["checked"]
        for bug in chosen:
            said = result(bug, kit, folder / "edited")
            missed += said is not None
            print(f"{bug.name}: {said or 'found'}", flush=True)
    print(f"{len(chosen)} bugs, {len(chosen) - missed} found at their line")
    return missed > 0


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.exit(main())
