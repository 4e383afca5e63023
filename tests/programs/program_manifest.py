"""The programs of this folder: a .cu file each, or a folder of files that are linked together.

A program says in the comments at its top (of main.cu, or of the only .cu with such comments):

    // Shows: one line in words
    // Links: cuda cublasLt          libraries beyond the runtime; cuBLAS goes without saying
    // Provokes: double free, leak   kinds of findings that it may get, since it errs on purpose

`bugs.toml` seeds bugs in them: each replaces one piece of text.
"""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROGRAMS = Path(__file__).resolve().parent
LIBRARIES = ("cuda", "cublas", "cublasLt")


class ManifestError(Exception):
    """A program or a bug is not as it should be; the message says which."""


@dataclass(frozen=True)
class Program:
    """A complete program: its name, what it shows, its sources, what it links and provokes."""

    name: str
    shows: str
    sources: tuple  # .cu and .cpp files
    libraries: tuple
    provokes: tuple


@dataclass(frozen=True)
class Bug:
    """An edit of a program, and what the checked build should say about it."""

    name: str
    program: str
    file: str  # within tests/programs
    old: str
    new: str
    kinds: tuple  # kinds of findings, of which one is expected
    line: str  # text of the line that the finding names; empty if it may name any
    why: str

    def edited(self):
        """The text of the file with the bug.

        Raises:
            ManifestError: the text to replace, or the line, is not there exactly once.
        """
        text = (PROGRAMS / self.file).read_text()
        if text.count(self.old) != 1:
            count = text.count(self.old)
            raise ManifestError(f"{self.name}: {self.old!r} is {count} times in {self.file}")
        return text.replace(self.old, self.new)

    def line_number(self):
        """The number of the line that the finding should name, or None."""
        if not self.line:
            return None
        lines = self.edited().splitlines()
        found = [number for number, line in enumerate(lines, 1) if self.line in line]
        if len(found) != 1:
            raise ManifestError(f"{self.name}: {self.line!r} is on {len(found)} lines")
        return found[0]


def field(text, name):
    """What a comment `// Name: ...` says, or None."""
    match = re.search(rf"^// {name}: (.+)$", text, re.MULTILINE)
    return match[1].strip() if match else None


def program_of(name, sources):
    """The program of some sources."""
    texts = [path.read_text() for path in sources]
    shown = [text for text in texts if field(text, "Shows")]
    if len(shown) != 1:
        raise ManifestError(f"{name}: {len(shown)} of its files say what it shows, not 1")
    linked = (field(shown[0], "Links") or "").split()
    if any("cublas_v2.h" in text for text in texts):
        linked.append("cublas")
    for library in linked:
        if library not in LIBRARIES:
            raise ManifestError(f"{name}: {library!r} is none of {', '.join(LIBRARIES)}")
    provokes = tuple((field(shown[0], "Provokes") or "").split(", "))
    return Program(name, field(shown[0], "Shows"), tuple(sources), tuple(linked), provokes)


def programs(folder=PROGRAMS):
    """All programs, by name."""
    found = [program_of(path.stem, [path]) for path in folder.glob("*.cu")]
    for part in folder.iterdir():
        sources = sorted([*part.glob("*.cu"), *part.glob("*.cpp")]) if part.is_dir() else []
        if sources:
            found.append(program_of(part.name, sources))
    return sorted(found, key=lambda program: program.name)


def bugs(path=PROGRAMS / "bugs.toml"):
    """All seeded bugs, in the file's order."""
    with open(path, "rb") as file:
        entries = tomllib.load(file)["bug"]
    return [
        Bug(
            entry["name"],
            entry["program"],
            entry.get("file", f"{entry['program']}.cu"),
            entry["old"],
            entry["new"],
            tuple(entry["kinds"]),
            entry["line"],
            entry["why"],
        )
        for entry in entries
    ]
