"""Runs the suite in the emulated GPU's checked build, and says where it differs from the headers.

python3 tests/suite/checked.py [NAME]    the programs whose name contains NAME
"""

import argparse
import json
import os
import sys
import tempfile
import types
from pathlib import Path

import emulated
import manifest

sys.path.insert(0, str(emulated.emulator_kit.EMULATOR))

import report
from findings import reading as checked_findings


class CheckedKit(emulated.SuiteKit):
    """The checked build of the emulator, and of the suite's programs."""

    def __init__(self, folder, cxx=None):
        emulated.emulator_kit.Kit.__init__(self, folder, cxx=cxx, checked=True)
        self.kernel_flags.append("-w")

    def findings(self, program, **env):
        """What is found when a program runs, and what it did."""
        path = self.folder / f"{program.name}.findings"
        path.unlink(missing_ok=True)
        done = self.run(program, EMULATOR_FINDINGS=str(path), **env)
        return (checked_findings.read_report(str(path)) if path.exists() else []), done

    def cases(self, source):
        """Builds a source of cases; gives a function (words of its command line) -> what is found,
        without advice. The program must end well, and print nothing."""
        program = types.SimpleNamespace(path=source, name=source.stem, fixed=False)
        self.build_program(program)
        path = self.folder / "findings"

        def found(*words):
            path.unlink(missing_ok=True)
            done = self.call(
                self.folder / source.stem, *words, env={"EMULATOR_FINDINGS": str(path)}
            )
            assert (done.returncode, done.stdout) == (0, ""), done.stderr
            findings = checked_findings.read_report(str(path)) if path.exists() else []
            return [each for each in findings if not each.is_advice]

        return found


def lines_of(finding):
    """The lines that a finding names."""
    places = [finding.at, finding.launch, finding.other and finding.other.at]
    return [place.line for place in places if place]


def differences(program, findings):
    """What the findings of a program should not be, or lack; as text."""
    kinds = {finding.kind for finding in findings}
    wrong = {kind for kind in kinds if not kind.startswith("advice")}
    if program.correct:
        return [f"{kind}, but it is correct" for kind in sorted(wrong)]
    if not kinds & set(program.finds):
        return [f"found {sorted(kinds) or 'nothing'}, not {' or '.join(program.finds)}"]
    lines = {line for finding in findings for line in lines_of(finding)}
    if program.lines and not lines & set(program.lines):
        return [f"found at {sorted(lines)}, not {program.lines}"]
    return []


def main():
    """Runs what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="?", default="")
    parser.add_argument("--folder", help="where to build, and to keep what was built")
    parser.add_argument("--json", help="writes all findings, for table.py --ours")
    arguments = parser.parse_args()
    programs = [program for program in manifest.programs() if arguments.name in program.name]
    found, surprises = {}, 0
    with tempfile.TemporaryDirectory() as temporary:
        kit = emulated.built(CheckedKit(Path(arguments.folder or temporary)), programs)
        for program in programs:
            findings, done = kit.findings(program)
            found[program.name] = report.as_json(findings)
            for text in differences(program, findings):
                surprises += 1
                print(f"{program.name}: {text} (exit status {done.returncode})")
                if done.returncode:
                    print(done.stderr[-300:])
    print(f"{len(programs)} programs, {surprises} surprises")
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(found, indent=1) + os.linesep)
    return surprises > 0


if __name__ == "__main__":
    sys.exit(main())
