"""The programs of the suite, as the comments at their top describe them.

    // bug: one line in words        or    // feature: one line in words
    // finds: kind, kind             of KINDS or ADVICE; what is reported is of one of them
    // line: MARK                    the report names a line that says `// <- bug`; or `none`
    // sanitizer: memcheck           tools of compute-sanitizer that should report it; or `none`

Two more are for programs that do not print the same everywhere, or are not clean to every tool:

    // prints: varies                what it prints is not compared
    // prints: unrecorded            nor is this: no real GPU has run it yet
    // tolerates: racecheck          tools that report the correct twin, or the feature, as well
"""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

SUITE = Path(__file__).resolve().parent
MARK = "// <- bug"
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")

sys.path.insert(0, str(SUITE.parent.parent / "emulator"))

from findings.kinds import WORDS  # noqa: E402

ADVICE = tuple(kind for kind in WORDS if kind.startswith("advice"))
NEVER_ENDS = "launch timeout"  # what a real GPU would not stop: no program here has it
KINDS = tuple(kind for kind in WORDS if kind not in (*ADVICE, NEVER_ENDS))
FIELDS = ("bug", "feature", "finds", "line", "sanitizer", "prints", "tolerates")


class ManifestError(Exception):
    """A program's comments are not as they should be; the message says where."""


@dataclass(frozen=True)
class Program:
    """One executable: a feature, a bug, or (`fixed`) a bug's correct twin."""

    path: Path
    kind: str  # feature or bug
    fixed: bool
    says: str
    finds: tuple = ()  # kinds, of which a checker reports one or more; none for what is correct
    lines: tuple = ()  # line numbers, of which the report names one
    sanitizer: tuple = ()  # tools of compute-sanitizer that should report it
    tolerates: tuple = ()  # tools that report it although it is correct
    compared: bool = True  # whether it prints the same on every device
    recorded: bool = True  # whether a real GPU has run it

    @property
    def name(self):
        """Unique: `leak` is the bug, `leak.fixed` its twin."""
        return self.path.stem + (".fixed" if self.fixed else "")

    @property
    def correct(self):
        """Whether every checker should be silent about it."""
        return self.kind == "feature" or self.fixed

    @property
    def uses_cublas(self):
        """Whether it is to be linked with cuBLAS."""
        return "cublas_v2.h" in self.path.read_text()


def header(path):
    """The fields in the comments at the top of a file."""
    fields = {}
    for line in path.read_text().splitlines():
        match = re.fullmatch(r"// (\w+): (.+)", line)
        if match is None:
            break
        if match[1] not in FIELDS:
            raise ManifestError(f"{path.name}: there is no field {match[1]!r}")
        fields[match[1]] = match[2].strip()
    return fields


def words(path, text, allowed):
    """The words of a list with commas; `none` is no word."""
    found = tuple(word.strip() for word in text.split(",")) if text != "none" else ()
    for word in found:
        if word not in allowed:
            raise ManifestError(f"{path.name}: {word!r} is none of {', '.join(allowed)}")
    return found


def marked_lines(path):
    """Numbers of the lines that carry the mark, counted from 1."""
    lines = path.read_text().splitlines()
    return tuple(number for number, line in enumerate(lines, 1) if line.endswith(MARK))


def bug_and_twin(path, fields):
    """Both programs of a file of bugs/."""
    missing = {"bug", "finds", "line", "sanitizer"} - set(fields)
    if missing:
        raise ManifestError(f"{path.name}: lacks {', '.join(sorted(missing))}")
    lines = marked_lines(path) if fields["line"] == "MARK" else ()
    if fields["line"] not in ("MARK", "none") or bool(lines) != (fields["line"] == "MARK"):
        raise ManifestError(f"{path.name}: the marked lines are not as `line:` says")
    if "FIXED" not in path.read_text():
        raise ManifestError(f"{path.name}: does not ask for FIXED")
    finds = words(path, fields["finds"], KINDS + ADVICE)
    tools = words(path, fields["sanitizer"], TOOLS)
    tolerates = words(path, fields.get("tolerates", "none"), TOOLS)
    recorded = fields.get("prints") != "unrecorded"
    said = fields["bug"]
    bug = Program(path, "bug", False, said, finds, lines, tools, (), False, recorded)
    twin = Program(path, "bug", True, said, (), (), (), tolerates, recorded, recorded)
    return [bug, twin]


def feature(path, fields):
    """The program of a file of features/."""
    if "feature" not in fields:
        raise ManifestError(f"{path.name}: lacks feature")
    tolerates = words(path, fields.get("tolerates", "none"), TOOLS)
    recorded = fields.get("prints") != "unrecorded"
    compared = recorded and fields.get("prints") != "varies"
    says = fields["feature"]
    return Program(path, "feature", False, says, (), (), (), tolerates, compared, recorded)


def half(programs, number):
    """The programs of every second file, from file 0 or 1: a bug and its twin stay together."""
    files = sorted({program.path for program in programs})
    return [program for program in programs if files.index(program.path) % 2 == number]


def programs(folder=SUITE):
    """All programs, features first, then each bug with its twin behind it."""
    found = [feature(path, header(path)) for path in sorted(folder.glob("features/*.cu"))]
    for path in sorted(folder.glob("bugs/*.cu")):
        found += bug_and_twin(path, header(path))
    names = [program.name for program in found]
    for name in names:
        if names.count(name) > 1:
            raise ManifestError(f"{name}: there are two programs of this name")
    return found


def compared_lines(stdout):
    """What a program printed, without the lines that depend on the device."""
    return [line for line in stdout.splitlines() if not line.startswith("# ")]
