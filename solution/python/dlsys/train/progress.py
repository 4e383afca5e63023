"""How a run looks on a terminal: a bar, and a line for each epoch."""

import contextlib
import sys


@contextlib.contextmanager
def bar(total, done, stream=sys.stderr):
    """Yields show(steps, words); it draws a bar on a terminal, and nothing elsewhere."""
    if not stream.isatty():
        yield lambda steps, words: None
        return
    try:
        from rich import progress
        from rich.console import Console
    except ImportError:
        yield lambda steps, words: print(
            "\r%d/%d %s " % (steps, total, words), end="", file=stream, flush=True
        )
        print(file=stream)
        return
    columns = (
        progress.BarColumn(), progress.MofNCompleteColumn(), progress.TimeRemainingColumn(),
        progress.TextColumn("{task.fields[words]}"),
    )  # fmt: skip
    with progress.Progress(*columns, console=Console(file=stream)) as shown:
        task = shown.add_task("", total=total, completed=done, words="")
        yield lambda steps, words: shown.update(task, completed=steps, words=words)
