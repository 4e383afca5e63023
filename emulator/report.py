"""Prints what the checked build of the emulated GPU found, for the one who wrote the kernels.

    python3 emulator/report.py [--all] [--json] FINDINGS

FINDINGS is the file that EMULATOR_FINDINGS named while the program ran; check_kernels.py does
all of it. Example:

    EMULATOR_FINDINGS=found.jsonl ./my_program
    python3 emulator/report.py found.jsonl

Exit codes: 0 nothing found (advice does not count), 1 something was, 2 usage, 3 the file can't
be read.
"""

import argparse
import collections
import dataclasses
import json
import os
import re
import shutil
import sys
import textwrap

from findings.reading import BrokenInput, read_report, read_traces
from findings.sentences import Sources, finding_lines, shown, trace_text
from findings.source_lines import Places, can_read_lines

SHOWN = 20  # findings, and pieces of advice, unless all are asked for
FOUND, BROKEN = 1, 3  # exit codes

# What is coloured on a terminal: title, marked line, hint.
COLOURS = (
    (re.compile(r"^(\d+\. .*)$", re.MULTILINE), "1"),
    (re.compile(r"^( *> +\d+ \|.*)$", re.MULTILINE), "31"),
    (re.compile(r"^( *hint:)", re.MULTILINE), "36"),
)

__all__ = ["BrokenInput", "as_json", "main", "read_report", "render"]


def numbered(findings, start, sources):
    """Findings as text, counted from `start`."""
    parts = []
    for number, finding in enumerate(findings, start):
        title, *lines = finding_lines(finding, sources)
        parts.append("%d. %s\n" % (number, title) + "".join("   %s\n" % line for line in lines))
    return "\n".join(parts)


def folded(findings, start, show_all, sources):
    """The same, with the last ones left out if there are many."""
    first = findings if show_all else findings[:SHOWN]
    text = numbered(first, start, sources)
    left = len(findings) - len(first)
    return text + ("\n%d more; hint: --all shows them\n" % left if left else "")


def summary(findings, ended=None, failed=None):
    """One line: how many of which kind; `ended` says what stopped the program, `failed` with which
    exit status it ended, if anything or if not with 0."""
    wrong = [finding for finding in findings if not finding.is_advice]
    if not wrong and ended:
        return "No finding, but %s: what would have come after that is unknown.\n" % ended
    if not wrong and failed:
        return "No access was wrong, but %s: fix first what it says above.\n" % failed
    if not wrong:
        return "Nothing wrong was found%s.\n" % (", but there is advice" if findings else "")
    counts = collections.Counter(finding.kind for finding in wrong)
    kinds = ", ".join("%d %s" % (count, kind) for kind, count in counts.items())
    plural = "" if len(wrong) == 1 else "s"
    stopped = "; %s, and what would have come after that is unknown" % ended if ended else ""
    return "%d finding%s: %s%s\n" % (len(wrong), plural, kinds, stopped)


def once_a_kernel(advice):
    """Of several pieces of one kind about one kernel the first, with the places of the others."""
    groups = {}
    for finding in advice:
        groups.setdefault((finding.kind, finding.kernel), []).append(finding)
    return [
        dataclasses.replace(first, also=tuple(other.at for other in others if other.at != first.at))
        for first, *others in groups.values()
    ]


def render(findings, show_all=False, ended=None, failed=None):
    """The whole report as text."""
    sources = Sources()
    wrong = [finding for finding in findings if not finding.is_advice]
    advice = once_a_kernel([finding for finding in findings if finding.is_advice])
    parts = [folded(wrong, 1, show_all, sources)] if wrong else []
    if advice:
        heading = "Advice: this changes no value, but a GPU could be faster\n\n"
        parts.append(heading + folded(advice, len(wrong) + 1, show_all, sources))
    return "\n".join(parts + [summary(findings, ended, failed)])


def as_json(findings):
    """The findings as a list of dicts: kind, kernel, file, line, other_line, count, title, text."""
    sources, entries = Sources(), []
    for finding in findings:
        other = finding.other.at if finding.other else None
        entries.append(
            {
                "kind": finding.kind,
                "kernel": finding.kernel,
                "file": shown(finding.at.file) if finding.at else None,
                "line": finding.at.line if finding.at else None,
                "other_line": other.line if other else None,
                "count": finding.count,
                "title": finding.title,
                "text": "\n".join(finding_lines(finding, sources)),
            }
        )
    return entries


def wrapped(line, width):
    """A line in several, except for source."""
    indent = re.match(r" *", line).group()
    if re.match(r" *>? +\d+ \|", line):
        return line
    return "\n".join(
        textwrap.wrap(
            line,
            width,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
    )


def for_output(text):
    """The text wrapped, and with colours if wanted, if it goes to a terminal."""
    if not sys.stdout.isatty():
        return text
    width = min(100, shutil.get_terminal_size().columns)
    text = "\n".join(wrapped(line, width) for line in text.split("\n"))
    if os.environ.get("NO_COLOR"):
        return text
    for pattern, colour in COLOURS:
        text = pattern.sub("\033[%sm\\1\033[0m" % colour, text)
    return text


def exit_code(findings):
    """1 if something is wrong, 0 else."""
    return FOUND if any(not finding.is_advice for finding in findings) else 0


def load(path):
    """(findings, traces) of a file.

    Raises SystemExit, with exit code 3, if it can't be read.
    """
    places = Places()
    try:
        return read_report(path, places), read_traces(path, places)
    except (OSError, BrokenInput) as error:
        print("report: %s" % error, file=sys.stderr)
        raise SystemExit(BROKEN) from None


def show(findings, traces, show_all=False, ended=None, failed=None):
    """Prints traces, then the report."""
    for trace in traces:
        print(trace_text(trace))
    print(("\n" if traces else "") + for_output(render(findings, show_all, ended, failed)), end="")
    if not can_read_lines() and any("module" in dict(finding.site) for finding in findings):
        print("hint: python3 -m pip install pyelftools, for the lines of source")


def main(arguments=None):
    """Prints the report of the file that the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("findings", help="the file that EMULATOR_FINDINGS named")
    parser.add_argument("--all", action="store_true", help="show more than %d" % SHOWN)
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
    options = parser.parse_args(arguments)
    findings, traces = load(options.findings)
    if options.json:
        print(json.dumps(as_json(findings), indent=1))
    else:
        show(findings, traces, options.all)
    return exit_code(findings)


if __name__ == "__main__":
    sys.exit(main())
