"""Assembles what a student handed in for grader.submission.reader: the only archive among the
files, or a folder with the files under the names that the student gave them."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import IO

from grader.collection.platforms import Part, is_archive
from grader.collection.unpacking import placeholder
from grader.submission.archive import MAX_DEPTH, MAX_MEMBERS, MAX_READ, ignored, shown, some

_CHUNK = 1 << 20


def assemble(
    parts: Sequence[Part], folder: str, into: Path, files: Sequence[str]
) -> tuple[str, list[str]]:
    """(path of the submission, "" if there is nothing in it; notes).

    Args:
        files: the paths that a submission hands in.
        folder: the name, below `into`, of what is made; written once for each content.

    Raises:
        OSError: a file can't be read, or the folder can't be written.
    """
    wanted = {PurePosixPath(file).name for file in files}
    notes: list[str] = []
    folders = [part for part in parts if part.path.is_dir()]
    if folders:
        left = [part.path.name for part in parts if part is not folders[0]]
        if left:
            notes.append(f"left beside the folder {shown(folders[0].path.name)}: {some(left)}.")
        return _in_folder(folders[0].path, wanted, notes), notes
    archives = [part for part in parts if _packed(part.path, part.own, wanted)]
    work = [part for part in parts if part.own in wanted]
    if len(archives) == 1 and not work:
        left = [part.own for part in parts if part is not archives[0]]
        if left:
            notes.append(f"{shown(archives[0].own)} is graded; left beside it: {some(left)}.")
        return str(archives[0].path), notes
    if archives and work:
        names = some([part.own for part in archives])
        notes.append(f"loose files are graded; {names} beside them was not opened.")
    return str(_put_together(parts, folder, into)), notes


def _packed(path: Path, name: str, wanted: set[str]) -> bool:
    return PurePosixPath(name).name not in wanted and is_archive(path, name)


def _in_folder(folder: Path, wanted: set[str], notes: list[str]) -> str:
    """The folder itself, or the one archive in it if nothing beside it can be the work."""
    found = list(_files(folder))
    if not found:
        notes.append(f"{shown(folder.name)} is empty, so nothing was handed in.")
        return ""
    if any(path.name in wanted for path in found):
        return str(folder)
    archives = [path for path in found if not path.is_symlink() and path.is_file()]
    archives = [path for path in archives if is_archive(path)]
    # where nobody said which files are wanted, folders beside an archive may be the work
    clear = bool(wanted) or all(path.parent == folder for path in found)
    if len(archives) != 1 or not clear:
        return str(folder)
    if left := [path.name for path in found if path != archives[0]]:
        notes.append(f"{shown(archives[0].name)} is graded; left beside it: {some(left)}.")
    return str(archives[0])


def _files(folder: Path) -> Iterator[Path]:
    """The files, without folders, links and what tools leave behind."""
    count, depth = 0, len(folder.parts)
    for place, names, files in os.walk(folder, onerror=_raise):
        names[:] = sorted(name for name in names if not ignored(name))
        if names and len(Path(place).parts) - depth > MAX_DEPTH:  # refused when it is graded
            yield Path(place) / names[0]
            return
        links = [name for name in names if (Path(place) / name).is_symlink()]
        for name in sorted(links + [name for name in files if not ignored(name)]):
            count += 1
            if count > MAX_MEMBERS:  # which is refused when it is graded
                return
            yield Path(place) / name


def _raise(error: OSError) -> None:
    raise error


def _put_together(parts: Sequence[Part], folder: str, into: Path) -> Path:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{part.own}\0".encode("utf-8", "surrogateescape"))
        with _open(part.path) as file:
            digest.update(f"{os.fstat(file.fileno()).st_size}\0".encode())
            if os.fstat(file.fileno()).st_size <= MAX_READ:
                digest.update(hashlib.sha256(file.read()).digest())
    place = into / "assembled" / digest.hexdigest()[:16]
    whole = place / folder
    if not whole.exists():
        unfinished = place / f".{folder}.part"
        shutil.rmtree(unfinished, ignore_errors=True)  # of a run that was killed
        unfinished.mkdir(parents=True)
        for part in parts:
            _copy(part.path, unfinished / _file_name(part))
        unfinished.rename(whole)
    return whole


def _file_name(part: Part) -> str:
    return part.path.name if part.own in ("", ".", "..") else part.own


def _copy(path: Path, to: Path) -> None:
    """Copies a file; in place of one that is too large, makes one of the same size alone."""
    with _open(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > MAX_READ:
            placeholder(to, size)
            return
        with open(to, "xb") as out:
            shutil.copyfileobj(file, out, _CHUNK)


def _open(path: Path) -> IO[bytes]:
    return open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")
