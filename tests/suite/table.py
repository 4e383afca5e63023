"""Writes handout/suite.md: which checker finds which bug, and which reports what is correct.

    python3 tests/suite/table.py [--gpu tests/suite/gpu.json] [--ours OURS.json] [-o OUT.md]

OURS.json is what the checked build of the emulated GPU reported: for each program's name (`leak`,
`leak.fixed`, `scan`) a list of findings {"kind": ..., "file": ..., "line": ...}.
"""

import argparse
import json
import sys
from pathlib import Path

import manifest

ROOT = manifest.SUITE.parent.parent
HEADER = ("bug", "without a tool", "ours", *manifest.TOOLS)
INTRODUCTION = """# What finds which bug

{bugs} programs with a bug each, their {bugs} correct twins and {features} correct programs that use
the same features (`tests/suite/`). Each was run on a real GPU, plainly and under each tool of
compute-sanitizer, and by the checked build of the emulated GPU (*ours*).

**yes**: the bug was reported. *line*: reported, but not with the line that has the bug. *other*:
something was reported, but not this bug. A dash: silence. *Without a tool* says what the GPU itself
made of it: `error` where a CUDA function returned one, `died` where the program did.
"""


def findings_of(path):
    """A function from a program to what we found in it, or to None where it was not run."""
    found = json.loads(path.read_text()) if path else {}

    def our_findings(program):
        return found.get(program.name)

    return our_findings


def our_verdict(program, findings):
    """How well a list of findings names a bug."""
    if findings is None:
        return "?"
    right = [finding for finding in findings if finding["kind"] in program.finds]
    if not right:
        return "other" if findings else "–"
    if program.lines and not any(finding["line"] in program.lines for finding in right):
        return "*line*"
    return "**yes**"


def tool_verdict(run):
    """Whether a tool reported anything."""
    if run is None or run["reports"] is None:
        return "?"
    return "**yes**" if run["reports"] else "–"


def plain_verdict(entry):
    """What happened on the GPU without any tool."""
    if entry is None or entry["exit"] is None:
        return "?" if entry is None else "no end"
    if entry["exit"] != 0:
        return "died"
    return "error" if "# cudaError" in entry["stdout"] else "–"


def row(program, gpu, our_findings):
    """A bug's line of the table."""
    entry = gpu.get(program.name)
    tools = (entry["tools"].get(tool) if entry else None for tool in manifest.TOOLS)
    return [
        f"{program.says} (`{program.name}`)",
        plain_verdict(entry),
        our_verdict(program, our_findings(program)),
        *map(tool_verdict, tools),
    ]


def totals(rows):
    """How many bugs each column has."""
    counts = [sum(line[i] in ("**yes**", "error", "died") for line in rows) for i in range(1, 7)]
    return [f"**found, of {len(rows)}**", *(f"**{count}**" for count in counts)]


def markdown(rows):
    """A table."""
    lines = [HEADER, ["---"] * len(HEADER), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def false_reports(programs, gpu, our_findings):
    """Correct programs that a checker reports, in lines."""
    lines = []
    for program in programs:
        said = [f"ours ({finding['kind']})" for finding in (our_findings(program) or [])[:1]]
        for tool, run in gpu.get(program.name, {"tools": {}})["tools"].items():
            if run["reports"]:
                said.append(f"{tool} ({run['first'].strip()})")
        if said:
            lines.append(f"- `{program.name}`: {'; '.join(said)}\n")
    return lines


def document(programs, gpu, our_findings):
    """The whole text."""
    bugs = [program for program in programs if not program.correct]
    correct = [program for program in programs if program.correct]
    groups = {
        "Bugs": [bug for bug in bugs if not bug.finds[0].startswith("advice")],
        "Correct, but slow": [bug for bug in bugs if bug.finds[0].startswith("advice")],
    }
    text = INTRODUCTION.format(bugs=len(bugs), features=len(correct) - len(bugs))
    for title, members in groups.items():
        rows = [row(program, gpu, our_findings) for program in members]
        text += f"\n## {title}\n\n" + markdown([*rows, totals(rows)])
    lines = false_reports(correct, gpu, our_findings)
    text += f"\n## Reports about the {len(correct)} correct programs\n\n"
    return text + ("".join(lines) or "None.\n")


def main():
    """Writes the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpu", type=Path, default=manifest.SUITE / "gpu.json")
    parser.add_argument("--ours", type=Path)
    parser.add_argument("-o", dest="output", type=Path, default=ROOT / "handout" / "suite.md")
    arguments = parser.parse_args()
    gpu = json.loads(arguments.gpu.read_text())
    text = document(manifest.programs(), gpu, findings_of(arguments.ours))
    arguments.output.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
