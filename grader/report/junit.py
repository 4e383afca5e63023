"""Writes a report as JUnit XML, the subset that every reader takes."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree

from grader.base.printable import printable
from grader.report.audience import standing
from grader.report.model import ERROR, FAIL, PASS, SKIPPED, Report, Result, Status
from grader.report.terminal import finding_text, number, other_details

_NO_PART = "submission, build and given code"
_ELEMENTS = {FAIL: "failure", ERROR: "error", SKIPPED: "skipped"}


def to_junit(report: Report) -> str:
    """One suite a part, one case a check; points are properties of both.

    A failure is the student's, an error the grader's or the machine's.
    """
    suites = _suites(report)
    total = [result for _, results in suites for result in results]
    root = ElementTree.Element("testsuites", {"name": printable(report.title), **_counts(total)})
    for title, results in suites:
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            {"name": printable(title), "timestamp": _timestamp(report), **_counts(results)},
        )
        _properties(suite, results, report)
        for result in results:
            _case(suite, result, title)
        if suite is root[0] and report.notes:
            _text(suite, "system-out", "\n".join(report.notes))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, "unicode") + "\n"


def _suites(report: Report) -> list[tuple[str, list[Result]]]:
    """The parts with their results, before them what belongs to none. At least one suite."""
    suites: dict[str, list[Result]] = {_NO_PART: list(_whole(report))}
    for result in report.results:
        part = result.task.partition(".")[0]
        name = f"part {part}, {report.parts.get(part, '')}" if part else _NO_PART
        suites.setdefault(name, []).append(result)
    return [(name, results) for name, results in suites.items() if results]


def _whole(report: Report) -> Iterator[Result]:
    """Cases on the grading as a whole: a reader of the counts alone must not see a success."""
    readable, ended = "the submission can be read", "the grading finished"
    status: Status = FAIL if report.problem else PASS
    yield Result("submission", "", 0, 0, status, readable, message=report.problem)
    if not report.complete:
        yield Result("grading", "", 0, 0, ERROR, ended, message="it was interrupted")


def _timestamp(report: Report) -> str:
    """Without the offset, which is UTC: readers of the format know none."""
    return printable(report.started.partition("+")[0])


def _counts(results: list[Result]) -> dict[str, str]:
    def count(status: str) -> str:
        return str(sum(result.status == status for result in results))

    return {
        "tests": str(len(results)),
        "failures": count(FAIL),
        "errors": count(ERROR),
        "skipped": count(SKIPPED),
        "time": f"{sum(result.seconds for result in results):.3f}",
    }


def _properties(suite: ElementTree.Element, results: list[Result], report: Report) -> None:
    pairs = {
        "score": number(sum(result.score for result in results)),
        "points": number(sum(result.points for result in results)),
        "device": report.device,
        "profile": report.profile,
        "standing": standing(report),
    }
    parent = ElementTree.SubElement(suite, "properties")
    for name, value in pairs.items():
        ElementTree.SubElement(parent, "property", {"name": name, "value": printable(value)})


def _case(suite: ElementTree.Element, result: Result, title: str) -> None:
    attributes = {
        "name": printable(f"{result.task} {result.check}: {result.sentence}".strip()),
        "classname": printable(title).replace(".", " "),  # readers split it at dots
        "time": f"{result.seconds:.3f}",
    }
    case = ElementTree.SubElement(suite, "testcase", attributes)
    parent = ElementTree.SubElement(case, "properties")
    for name, value in (("score", result.score), ("points", result.points)):
        ElementTree.SubElement(parent, "property", {"name": name, "value": number(value)})
    if result.status in _ELEMENTS:
        element = _text(case, _ELEMENTS[result.status], full_text(result))
        element.set("message", printable(result.message))


def _text(parent: ElementTree.Element, tag: str, text: str) -> ElementTree.Element:
    element = ElementTree.SubElement(parent, tag)
    element.text = printable(text)
    return element


def full_text(result: Result) -> str:
    """Everything that is said of a result, as lines."""
    lines = [result.message]
    lines += [f"hint: {result.hint}"] if result.hint else []
    lines += [finding_text(finding) for finding in result.findings]
    return "\n".join([*lines, *other_details(result)])
