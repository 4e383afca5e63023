"""Shows a report on the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from grader.base.printable import printable
from grader.course.rubric import ALWAYS
from grader.report.audience import standing
from grader.report.model import ERROR, FAIL, NOT_BEGUN, PASS, SKIPPED, ByHand, Report, Result

_STYLES = {
    PASS: "green", FAIL: "red", SKIPPED: "yellow", ERROR: "bold magenta", NOT_BEGUN: "yellow",
}  # fmt: skip
_DETAIL_LINES = 12
_FINDINGS = 3
_HIDDEN = {"after_due_date": "shown after the due date", "never": "never shown"}


def number(points: float) -> str:
    """Points without a useless fraction."""
    return f"{points:g}"


def _safe(text: object) -> str:
    """Text of a submission, which is neither our markup nor a command to the terminal."""
    return escape(printable(text))


def show_result(console: Console, result: Result) -> None:
    """One line, when the check has run."""
    hidden = "" if result.visibility == ALWAYS else f"  ({_HIDDEN[result.visibility]})"
    style = _STYLES[result.state]
    state = "not begun" if result.state == NOT_BEGUN else result.state
    task = result.task or "-"
    points = f"{number(result.score)}/{number(result.points)}" if result.points else ""
    console.print(
        f"[{style}]{state:<9}[/] {task:<5} {_safe(result.check):<37} "
        f"{points:>5} {result.seconds:6.1f} s{hidden}",
        highlight=False,
    )


def show_report(console: Console, report: Report) -> None:
    """What went wrong, then the points of each part, then the total."""
    for note in report.notes:
        console.print(f"note: {_safe(note)}", highlight=False)
    if report.problem:
        console.print(f"[red]{_safe(report.problem)}[/]", highlight=False)
    for result in report.results:
        if result.state in (FAIL, ERROR):
            show_failure(console, result)
    if not report.problem:
        for reason, names in _not_run(report):
            console.print(
                f"\n[yellow]not run:[/] {_safe(', '.join(names))}: {_safe(reason)}", highlight=False
            )
    if unbegun := [f"{r.task} {r.check}" for r in report.results if r.state == NOT_BEGUN]:
        console.print(f"\n[yellow]not begun:[/] {_safe(', '.join(unbegun))}", highlight=False)
    _show_facts(console, report)
    _show_points(console, report)


def _not_run(report: Report) -> Iterator[tuple[str, list[str]]]:
    """(why, checks) of those with points that were not run."""
    reasons: dict[str, list[str]] = {}
    for result in report.results:
        if result.state == SKIPPED and result.points:
            reasons.setdefault(result.message, []).append(f"{result.task} {result.check}".strip())
    yield from reasons.items()


def show_failure(console: Console, result: Result) -> None:
    """Everything about one check that failed: message, hint, findings."""
    title = f"{result.task} " if result.task else ""
    console.print(f"\n[bold]{title}{_safe(result.check)}[/]: {_safe(result.sentence)}")
    blame = "the grader failed: " if result.status == ERROR else ""
    console.print(f"  [{_STYLES[result.status]}]{blame}{_safe(result.message)}[/]", highlight=False)
    shown = result.findings[:_FINDINGS]
    for line in other_details(result)[-_DETAIL_LINES:]:
        console.print(f"    {_safe(line)}", highlight=False)
    if result.hint:
        console.print(f"  hint: {_safe(result.hint)}", highlight=False)
    for number, found in enumerate(shown):
        _show_finding(console, found, whole=number == 0)
    left = len(result.findings) - len(shown)
    if left:
        console.print(f"  and {left} more like these", highlight=False)


def _show_finding(console: Console, found: dict[str, Any], whole: bool) -> None:
    """What a tool saw a kernel do: all of it, or the title and the sentence."""
    title, *lines = finding_text(found).split("\n")
    lines = lines if whole else lines[:1]
    console.print(
        f"  [bold]{_safe(found.get('tool') or 'found')}[/]: {_safe(title)}", highlight=False
    )
    for line in lines:
        style = "red" if line.startswith("  >") else None
        console.print(f"    {_safe(line)}", highlight=False, style=style)


def finding_text(finding: dict[str, Any]) -> str:
    """All that a finding says, its title first and once."""
    title, text = str(finding.get("title", "")), str(finding.get("text", ""))
    return text if text.startswith(title) else f"{title}\n{text}".strip()


def other_details(result: Result) -> list[str]:
    """The details without the lines that only repeat a finding."""
    said = tuple(filter(None, (str(found.get("sentence", "")) for found in result.findings)))
    return [line for line in result.details if not (said and line.endswith(said))]


def _show_facts(console: Console, report: Report) -> None:
    """Accuracies and times of the trainings, speeds of kernels."""
    for line in speeds(report):
        console.print(f"speed of {_safe(line)}", highlight=False)
    for training in trainings(report):
        console.print(
            f"{_safe(training['name'])}: accuracy {training['accuracy']:.4f} "
            f"(at least {training['wanted']:g}), {training['seconds']:.2f} s an epoch"
            f"{training['short']}",
            highlight=False,
        )
    for result in report.results:
        recipe = result.facts.get("recipe")
        if isinstance(recipe, dict) and result.check == "mnist_gpu":
            images, source = recipe.get("train"), recipe.get("source")
            images = f"{images:,}" if isinstance(images, int) else images
            console.print(f"trained on {_safe(images)} images: {_safe(source)}", highlight=False)


def speeds(report: Report) -> list[str]:
    """A line for each kernel that was timed."""
    timed = [result.facts.get("speed") for result in report.results]
    lines = [speed.get("summary") for speed in timed if isinstance(speed, dict)]
    return [line for line in lines if isinstance(line, str)]


def trainings(report: Report) -> Iterator[dict[str, Any]]:
    """name, accuracy, wanted, seconds (of an epoch), losses of each training; and as `short`, in
    words, that it had fewer steps, or "".

    A stored report may hold anything in its facts: what has another form is passed over.
    """
    for result in report.results:
        for name, fact in result.facts.items():
            if not isinstance(fact, dict) or "epoch_seconds" not in fact:
                continue
            figures = [fact.get(key) for key in ("accuracy", "wanted", "epoch_seconds")]
            losses = fact.get("losses", [])
            losses = losses if isinstance(losses, list) else []
            if all(isinstance(figure, (int, float)) for figure in [*figures, *losses]):
                model, _, where = name.partition("_")
                keys = ("accuracy", "wanted", "seconds")
                figures_by_name = dict(zip(keys, figures, strict=True))
                short = _short(fact.get("steps"), fact.get("of_steps"))
                yield {"name": f"{model} on {where}", "losses": losses, "short": short,
                       **figures_by_name}  # fmt: skip


def _short(made: object, planned: object) -> str:
    if not isinstance(made, int) or not isinstance(planned, int):
        return ""
    return f"; slow here: {made} of {planned} steps, each compared with the right one"


def _show_points(console: Console, report: Report) -> None:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(justify="left")
    table.add_column(justify="right")
    for part, name in report.parts.items():
        rows = [r for r in report.results if r.task.partition(".")[0] == part]
        if rows:
            score, points = sum(r.score for r in rows), sum(r.points for r in rows)
            table.add_row(f"part {part}, {name}", f"{number(score)} / {number(points)}")
    for each in report.by_hand:
        on = f", {each['on']}" if each["on"] else ""
        table.add_row(_safe(f"by hand{on}: {each['comment']} ({each['by']})"), signed(each))
    total = "total without hidden checks" if report.withheld else "total"
    table.add_row(f"[bold]{total}[/]", f"[bold]{number(report.score)} / {number(report.points)}[/]")
    console.print()
    console.print(table)
    if report.withheld or not report.complete:
        console.print(standing(report), highlight=False)
    seed = f"seed {report.seed}, " if report.seed else ""
    console.print(
        _safe(
            f"{report.title}, profile {report.profile}, {report.device} GPU, isolation "
            f"{report.isolation}, {seed}{report.seconds:.0f} s"
        ),
        highlight=False,
        style="dim",
    )
    if report.has_errors:
        console.print("[bold magenta]the grader failed in some checks; their points are open[/]")


def by_hand_text(each: ByHand) -> str:
    """What was given by hand, on what, why and by whom: "relu +1: the check was wrong (Ada)"."""
    what = " ".join(filter(None, (each["on"], signed(each))))
    return f"{what}{': ' if what else ''}{each['comment']} ({each['by']})"


def signed(each: ByHand) -> str:
    """The points of what was given by hand, with their sign; "" for none."""
    return f"{each['points']:+g}" if each["points"] else ""


def show_timing(console: Console, report: Report) -> None:
    """Where the time went: what was done around the checks, and every check, the longest first."""
    checks = {result.check: result.seconds for result in report.results}
    spent = {**{f"({what})": seconds for what, seconds in report.timing.items()}, **checks}
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(justify="left")
    table.add_column(justify="right")
    table.add_column(justify="left")
    longest = max(spent.values(), default=0.0) or 1.0
    for what, seconds in sorted(spent.items(), key=lambda item: -item[1]):
        table.add_row(_safe(what), f"{seconds:.2f} s", "█" * round(30 * seconds / longest))
    table.add_row("[bold]in all[/]", f"[bold]{report.seconds:.2f} s[/]", "")
    console.print()
    console.print(table)
    console.print(
        "in brackets: beside the checks; a check's own time includes copying "
        "and explaining; some run at the same time",
        style="dim",
        highlight=False,
    )
