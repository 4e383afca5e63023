"""Edits of a source file that a test makes."""

from pathlib import Path


def edit(path: Path, *edits: tuple[str, str]) -> Path:
    """Replaces texts in a file, (find, replace) each; returns its path.

    Raises:
        ValueError: the file has one of the texts not once: the test must follow the source.
    """
    text = path.read_text()
    for find, replace in edits:
        if text.count(find) != 1:
            raise ValueError(f"{path} has {find!r} {text.count(find)} times; hint: fix the test")
        text = text.replace(find, replace)
    path.write_text(text)
    return path
