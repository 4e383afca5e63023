"""Writes handout/reports.md: what the grader says of five wrong submissions, and where the bug is.

python tools/example_reports.py            write it
"""

from __future__ import annotations

import io
import re
import sys
import tempfile
from pathlib import Path

KIT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(KIT), str(KIT / "tests/support"), str(KIT / "tools")]

from rich.console import Console

import catalogue
from grader.course.rubric import load_rubric
from grader.grading.runner import Options, grade
from grader.report.model import FAIL, Result
from grader.report.terminal import show_failure

PAGE = catalogue.KIT / "handout" / "reports.md"
SHOWN = (
    "add_no_guard",
    "reduce_sum_no_barrier",
    "broadcast_to_rounds_down",
    "matmul_ignores_transpose",
    "add_without_unbroadcast",
)
SEED = "5eed"
HEAD = """# Five reports, and the bugs behind them

<!-- made by `python tools/example_reports.py`, from tests/submissions/ -->

What `grader grade` says of five submissions, each wrong in one place. Read the report, open the
reference's file at the function it names, and guess the line before you unfold the answer. How to
read them:

- The first line names the task and the check, and says what it checks.
- The second says which call went wrong, with the shapes of its arguments, how many elements differ,
  and the first of them: where, what came, what was expected.
- A hint stands there where the pattern is known: values that were never written, a factor, a row.
- `checked build` is the same call again, with every access of memory looked at: the kind of fault,
  the kernel, block and thread, the line and its neighbours, a likely cause and a hint.
"""


def failure(mutant: catalogue.Mutant) -> Result:
    """What its check says of a submission."""
    with tempfile.TemporaryDirectory() as folder:
        work = catalogue.write(mutant, Path(folder))
        rubric = load_rubric("default")
        report = grade(work, Options(rubric, "emulated", seed=SEED, only=(mutant.check,)))
    result = next(result for result in report.results if result.check == mutant.check)
    assert result.status == FAIL, f"{mutant.name} is not caught: {result.message}"
    return result


def section(mutant: catalogue.Mutant) -> str:
    """The report as the terminal shows it, and the answer."""
    text = io.StringIO()
    show_failure(Console(file=text, width=96), failure(mutant))
    shown = "\n".join(line.rstrip() for line in text.getvalue().strip().splitlines())
    shown = re.sub("0x[0-9a-f]{6,}", "0x...", shown)  # another address in every run
    ((file, right, wrong),) = mutant.edits
    return f"""
## {mutant.check}

```
{shown}
```

<details><summary>The bug</summary>

In `{file}`: {mutant.title}.

```diff
{_changed(right, wrong)}
```

</details>
"""


def _changed(right: str, wrong: str) -> str:
    lines = [f"- {line}" for line in right.strip("\n").splitlines()]
    return "\n".join([*lines, *(f"+ {line}" for line in wrong.strip("\n").splitlines())])


def page() -> str:
    """The whole page."""
    mutants = {mutant.name: mutant for mutant in catalogue.mutants()}
    return HEAD + "".join(section(mutants[name]) for name in SHOWN)


if __name__ == "__main__":
    PAGE.write_text(page())
