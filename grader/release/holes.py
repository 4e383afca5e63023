"""Generates the student's skeleton from solution/ by stripping the marked holes.

A hole is opened by `# BEGIN SOLUTION 2.1` and closed by `# END SOLUTION` (`//` in C++ and CUDA),
each alone on its line. An indented hole is the body of a function; one at column 0 holds helper
functions or kernels. A released tree carries MANIFEST, which says what was stripped, and no time
stamp: the same source gives the same bytes.

The emulated GPU is no part of solution/ but lies beside it. It goes along into a skeleton that has
none beside it, and into each archive.
"""

import ast
import difflib
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import stat
import tarfile
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from grader.base.errors import UsageError
from grader.release.front_matter import PLACE, Cover

#: {"parts": [1, 2], "tasks": ["1.1", ...]}: the tasks stripped; and what Cover.facts has. With
#: them "release", which names the contents of the other files.
MANIFEST = ".release.json"
CPP_SUFFIXES = frozenset((".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp"))
LEFT_OUT = frozenset(("build", "__pycache__"))  # and hidden files, KEPT_HIDDEN aside
#: A file that keeps its folder out of skeletons: lessons that show how a task is done.
LESSONS = ".lessons"
KEPT_HIDDEN = frozenset((".gitignore", ".vscode", ".devcontainer", ".github"))
LEAST_LEAK = 12  # characters; shorter lines ("return out") say nothing

MARKER = re.compile(
    r"(?P<indent>[ \t]*)(?P<comment>#|//) (?:BEGIN SOLUTION (?P<task>\S+)|END SOLUTION)"
)
NEARLY = re.compile(r"(?<![a-z])(begin|end)[\W_]*solution", re.IGNORECASE)


class ReleaseError(UsageError):
    """The skeleton can't be made; the message starts with `file:line:` if there is such a place."""


@dataclass(frozen=True)
class _Line:
    """A line that is no marker.

    Attributes:
        task: of the hole around it.
        opens: whether it stands for BEGIN.
    """

    number: int
    text: str
    task: str | None = None
    opens: bool = False


@dataclass(frozen=True)
class _File:
    """A file of the skeleton."""

    content: bytes
    mode: int
    tasks: frozenset[str] = frozenset()


# --- markers ------------------------------------------------------------------------------------


def _comment(filename: str) -> str | None:
    """The comment sign of files with holes; None for other files."""
    path = PurePosixPath(filename)
    if path.suffix in (".py", ".toml", ".mk") or path.name == "Makefile":
        return "#"
    return "//" if path.suffix in CPP_SUFFIXES else None


def _looks_like_marker(line: str) -> bool:
    if NEARLY.search(line):
        return True
    words = re.findall(r"[A-Za-z]+", line.upper())[:2]
    if len(words) < 2 or not line.lstrip().startswith(("#", "//", "/*", "*", "--")):
        return False
    first = difflib.get_close_matches(words[0], ("BEGIN", "END"), 1, 0.7)
    return bool(first and difflib.get_close_matches(words[1], ("SOLUTION", "SOLUTIONS"), 1, 0.7))


def _lines(text: str, filename: str, known: Collection[str] | None = None) -> Iterator[_Line]:
    """The lines, each with the task of its hole. Raises ReleaseError for any bad marker."""
    hole: tuple[int, str, str] | None = None  # line, indent, task of the open one
    for number, line in enumerate(text.split("\n"), 1):
        marker = MARKER.fullmatch(line.removesuffix("\r"))
        if not marker or marker["comment"] != _comment(filename):
            _refuse_nearly(line, filename, number)
            yield _Line(number, line, hole[2] if hole else None)
        elif marker["task"]:
            if hole:
                _fail(filename, number, f"BEGIN SOLUTION inside that of line {hole[0]}")
            _check_task(marker["task"], filename, number, known)
            hole = number, marker["indent"], marker["task"]
            yield _Line(number, line, marker["task"], opens=True)
        else:
            _check_end(hole, marker["indent"], filename, number)
            hole = None
    if hole:
        _fail(filename, hole[0], f"BEGIN SOLUTION {hole[2]} has no END SOLUTION")


def _fail(filename: str, number: int, what: str) -> None:
    raise ReleaseError(f"{filename}:{number}: {what}")


def _refuse_nearly(line: str, filename: str, number: int) -> None:
    if not _looks_like_marker(line):
        return
    sign = _comment(filename)
    if sign is None:
        _fail(filename, number, f"a marker, but this kind of file is not stripped: {line.strip()}")
    _fail(
        filename,
        number,
        f"not a marker, but looks like one: {line.strip()}; hint: write `{sign} BEGIN "
        f"SOLUTION 2.1` or `{sign} END SOLUTION`, alone on the line",
    )


def _check_task(task: str, filename: str, number: int, known: Collection[str] | None) -> None:
    if not re.fullmatch(r"[1-9]\d*\.[1-9]\d*", task):
        _fail(filename, number, f"task id {task} is not part.number; hint: write 2.1")
    if known is not None and task not in known:
        _fail(filename, number, f"task {task} is unknown; known: {', '.join(_ordered(known))}")


def _check_end(hole: tuple[int, str, str] | None, indent: str, filename: str, number: int) -> None:
    if not hole:
        _fail(filename, number, "END SOLUTION without a BEGIN SOLUTION")
    elif hole[1] != indent:
        _fail(filename, number, f"END SOLUTION is not indented like its BEGIN in line {hole[0]}")


def _ordered(tasks: Collection[str]) -> list[str]:
    return sorted(tasks, key=lambda task: [int(number) for number in task.split(".")])


def _stripped(task: str | None, parts: Collection[int] | None) -> bool:
    return task is not None and (parts is None or int(task.split(".")[0]) in parts)


# --- one file -----------------------------------------------------------------------------------


def strip(
    text: str,
    filename: str,
    parts: Collection[int] | None = None,
    known_tasks: Collection[str] | None = None,
) -> str:
    """`text` without the holes of `parts` (None: all); the other holes lose only their markers.

    Raises:
        ReleaseError: `file:line: what`, for a marker that is nested, unclosed, unopened, unnamed,
            misspelt or of a task outside `known_tasks`.
    """
    out = []
    for line in _lines(text, filename, known_tasks):
        if not _stripped(line.task, parts):
            out += [] if line.opens else [line.text]
        elif line.opens:
            out += _todo(line, filename)
    return "\n".join(out)


def _todo(line: _Line, filename: str) -> list[str]:
    """The lines that replace a hole, with its indentation and line endings."""
    indent = line.text[: len(line.text) - len(line.text.lstrip(" \t"))]
    end = "\r" if line.text.endswith("\r") else ""
    python, cpp = filename.endswith(".py"), _comment(filename) == "//"
    if not (python or cpp):
        what, stub = "lines", ""
    elif not indent:
        what, stub = ("kernels" if cpp else "own functions"), ""
    elif cpp:
        what, stub = "code", f'return not_written("{line.task}");'
    else:
        what, stub = "code", f'raise NotImplementedError("task {line.task} is not written yet")'
    todo = f"{_comment(filename)} TODO (task {line.task}): your {what} here"
    return [indent + text + end for text in (todo, stub) if text]


# --- the tree -----------------------------------------------------------------------------------


def _walk(folder: Path, below: str = "") -> Iterator[str]:
    """The files of a tree, sorted. Raises ReleaseError for a link."""
    for path in sorted((folder / below).iterdir()):
        name = f"{below}/{path.name}" if below else path.name
        hidden = path.name.startswith(".") and path.name not in KEPT_HIDDEN
        left_out = path.name in LEFT_OUT or (path / LESSONS).exists()
        if hidden or left_out or path.suffix == ".pyc":
            continue
        mode = path.lstat().st_mode
        if stat.S_ISDIR(mode):
            yield from _walk(folder, name)
        elif stat.S_ISREG(mode):
            yield name
        else:
            kind = "a link" if stat.S_ISLNK(mode) else "neither file nor folder"
            raise ReleaseError(f"{name}: is {kind}; hint: release copies plain files only")


def _text(path: Path) -> str | None:
    """The content with its line endings; None if it is no text."""
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return None


def _render(
    source: Path,
    parts: Collection[int] | None,
    known: Collection[str] | None,
    cover: Cover | None,
) -> dict[str, _File]:
    """The skeleton, in memory: path -> file."""
    if not source.is_dir():
        raise ReleaseError(f"{source} is not a folder")
    files = {name: _render_file(source / name, name, parts, known) for name in _walk(source)}
    tasks = _ordered({task for file in files.values() for task in file.tasks})
    found = sorted({int(task.split(".")[0]) for task in tasks})
    manifest = {"parts": found, "tasks": tasks}
    if cover:
        files["README.md"] = _with_front(files.get("README.md"), cover.front)
        files |= {name: _File(content, 0o644) for name, content in cover.files.items()}
        manifest = {**cover.facts, "release": _digest(files), **manifest}
    text = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
    return files | {MANIFEST: _File(text.encode(), 0o644)}


def _emulator_for(source: Path, target: Path) -> dict[str, _File]:
    """The emulated GPU for a skeleton; nothing if one lies beside the skeleton."""
    beside = source.parent / "emulator"
    if (source / "emulator").is_dir() or not beside.is_dir():
        return {}
    if (target.parent / "emulator").is_dir():
        return {}
    return _plain_files(beside, "emulator")


def _plain_files(folder: Path, top: str) -> dict[str, _File]:
    """The files of a folder, unchanged, below `top`."""
    return {
        f"{top}/{name}": _File((folder / name).read_bytes(), (folder / name).stat().st_mode)
        for name in _walk(folder)
    }


def _with_front(file: _File | None, front: str) -> _File:
    """README.md with the course's names, dates and points."""
    lines = (file.content if file else b"").decode().split("\n")
    if file is None or lines.count(PLACE) != 1:
        raise ReleaseError(
            f"README.md: has no line {PLACE}, or several, where dates and points are written; "
            "hint: put it below the title"
        )
    lines[lines.index(PLACE)] = front
    return _File("\n".join(lines).encode(), file.mode)


def _digest(files: dict[str, _File]) -> str:
    """A digest of the contents."""
    digest = hashlib.sha256()
    for name, file in sorted(files.items()):
        digest.update(f"{name}\0{len(file.content)}\0".encode() + file.content)
    return digest.hexdigest()[:12]


def _render_file(
    path: Path, name: str, parts: Collection[int] | None, known: Collection[str] | None
) -> _File:
    mode, text = stat.S_IMODE(path.stat().st_mode), _text(path)
    if text is None:
        if _comment(name):
            raise ReleaseError(f"{name}: is not UTF-8 text")
        return _File(path.read_bytes(), mode)
    result = strip(text, name, parts, known)
    tasks = {line.task for line in _lines(text, name) if line.task and _stripped(line.task, parts)}
    if name.endswith(".py"):
        _check_python(result, name)
    return _File(result.encode(), mode, frozenset(tasks))


def _check_python(text: str, name: str) -> None:
    try:
        ast.parse(text)
    except SyntaxError as error:
        _fail(name, error.lineno or 1, f"the skeleton does not parse: {error.msg}")


def release(
    source: Path,
    target: Path,
    parts: Collection[int] | None = None,
    known_tasks: Collection[str] | None = None,
    cover: Cover | None = None,
) -> list[Path]:
    """Writes the skeleton of `source` to `target`; returns its files, relative and sorted.

    Writes a new tree beside `target` and swaps the two, so that a failure leaves the old tree
    whole.

    Raises:
        ReleaseError: a marker is wrong, there is a link, or `target` is no release and not empty.
    """
    _check_target(source, target)
    files = _render(source, parts, known_tasks, cover) | _emulator_for(source, target)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as beside:
        new, old = Path(beside, "new"), Path(beside, "old")
        for name, file in files.items():
            _write(new / name, file)
        _swap(new, target, old)
    return [Path(name) for name in sorted(files)]


def _check_target(source: Path, target: Path) -> None:
    here, there = source.resolve(), target.resolve()
    if here == there or here in there.parents or there in here.parents:
        raise ReleaseError(f"one of {target} and {source} lies in the other")
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise ReleaseError(f"{target} is not a folder")
    if target.exists() and any(target.iterdir()) and not (target / MANIFEST).is_file():
        raise ReleaseError(
            f"{target} is not empty and not a release (it has no {MANIFEST}); "
            "hint: name another folder, or remove this one"
        )


def _write(path: Path, file: _File) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(file.content)
    path.chmod(file.mode)


def _swap(new: Path, target: Path, old: Path) -> None:
    if not target.exists():
        os.rename(new, target)
        return
    os.rename(target, old)
    try:
        os.rename(new, target)
    except OSError:
        os.rename(old, target)
        raise
    shutil.rmtree(old)


def stale(
    source: Path,
    target: Path,
    parts: Collection[int] | None = None,
    known_tasks: Collection[str] | None = None,
    cover: Cover | None = None,
) -> list[str]:
    """The differences between `target` and a fresh release, in sentences. Build output and hidden
    files in `target` do not count.

    Raises:
        ReleaseError: see `release`.
    """
    files = _render(source, parts, known_tasks, cover) | _emulator_for(source, target)
    there = set(_walk(target)) if target.is_dir() else set()
    there |= {MANIFEST} if (target / MANIFEST).is_file() else set()
    said = [f"{name} is missing" for name in files.keys() - there]
    said += [f"{name} is extra" for name in there - files.keys()]
    for name in there & files.keys():
        if (target / name).read_bytes() != files[name].content:
            said.append(f"{name} differs")
        elif ((target / name).stat().st_mode ^ files[name].mode) & stat.S_IXUSR:
            said.append(f"{name} differs in its executable bit")
    return sorted(said)


def pack(folder: Path, top: str) -> bytes:
    """A release as .tar.gz: all of it in the folder `top`, and the emulated GPU beside it. The same
    release gives the same bytes.

    Raises:
        ReleaseError: there is a link.
    """
    files = _plain_files(folder, top)
    files[f"{top}/{MANIFEST}"] = _File((folder / MANIFEST).read_bytes(), 0o644)
    beside = folder.parent / "emulator"
    if beside.is_dir() and not (folder / "emulator").is_dir():
        files |= _plain_files(beside, f"{top}/emulator")
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, file in sorted(files.items()):
            info = tarfile.TarInfo(name)
            info.size = len(file.content)
            info.mode = 0o755 if file.mode & stat.S_IXUSR else 0o644
            archive.addfile(info, io.BytesIO(file.content))
    return gzip.compress(tar.getvalue(), mtime=0)


# --- leaks --------------------------------------------------------------------------------------


def solution_lines(source: Path, parts: Collection[int] | None = None) -> set[str]:
    """The characteristic lines that occur in holes of `parts` and nowhere else, with single
    blanks."""
    inside, outside = set[str](), set[str]()
    for name in _walk(source):
        for line in _lines(_text(source / name) or "", name):
            text = " ".join(line.text.split())
            if line.opens or len(text) <= LEAST_LEAK or _only_comment(text, name):
                continue
            (inside if _stripped(line.task, parts) else outside).add(text)
    return inside - outside


def _only_comment(text: str, name: str) -> bool:
    return text.startswith("#" if _comment(name) == "#" else ("//", "/*", "*"))


def leaks(
    source: Path, target: Path, parts: Collection[int] | None = None
) -> list[tuple[str, int, str]]:
    """The lines of `target` that belong to a solution: (file, line number, text)."""
    secret = solution_lines(source, parts)
    return [
        (name, number, line.strip())
        for name in _walk(target)
        for number, line in enumerate((_text(target / name) or "").split("\n"), 1)
        if " ".join(line.split()) in secret
    ]
