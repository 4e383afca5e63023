"""Finds the files with holes in a submission, a folder or an archive, and takes them.

Runs nothing and unpacks nothing to disk. Refuses a link that is a file with holes or lies on the
path to one; skips other links. Takes only files with holes.
"""

import difflib
import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import NoReturn

from grader.submission.archive import (
    DAMAGE,
    IGNORED,
    MAX_FILE,
    PACK_HINT,
    Member,
    SubmissionError,
    ignored,
    let_out,
    list_members,
    shown,
)
from grader.submission.manifest import LARGEST, manifest_notes
from grader.submission.manifest import NAME as MANIFEST

__all__ = ["Submission", "SubmissionError", "load_submission"]

SHOWN = 12  # names in a list for people
ARCHIVE_NAMES = (".zip", ".tar", ".tgz", ".gz", ".bz2", ".xz", ".7z", ".rar")


@dataclass(frozen=True)
class Submission:
    """A submission's files with holes, and notes on everything else in it."""

    source: Path
    root: str  # inside the source, "" for its top
    taken: dict[str, bytes]  # path in the pristine tree -> content
    missing: list[str]  # files with holes that are not there
    changed: list[str]  # other files of the pristine tree that differ; not taken
    extra: list[str]  # files that the pristine tree lacks, shortened for people
    sha256: str  # over the taken files
    notes: list[str]  # sentences for the report


def load_submission(source: Path, holes: Sequence[str], pristine: Path) -> Submission:
    """Takes the files named by `holes` (paths in `pristine`) from a folder or an archive.

    Raises:
        SubmissionError: that is unsafe, or none of the files is there; one sentence.
        OSError: the machine failed, which says nothing about the submission.
    """
    members = list_members(source)
    useful = [member for member in members if not ignored(member.name)]
    if _is_wrapper(source, useful, holes):
        return load_submission(source / useful[0].name, holes, pristine)
    root, found, notes = _locate(source, [member.name for member in useful], holes)
    _refuse_links(source, members, [*found.values(), *(_join(root, hole) for hole in holes)])
    by_name = {member.name: member for member in useful}
    taken = {hole: _take(source, by_name[name]) for hole, name in found.items()}
    missing = [hole for hole in holes if hole not in taken]
    manifest = by_name.pop(_join(root, MANIFEST), None)
    if manifest and manifest.kind == "file":
        notes += manifest_notes(_manifest(manifest), taken, pristine)
    changed, extra = _compare(root, by_name, found, pristine)
    notes += _text_notes(taken, pristine) + _rest_notes(members, missing, changed, extra)
    return Submission(source, root, taken, missing, changed, _shorten(extra), _sha256(taken), notes)


def with_all(submission: Submission, required: Sequence[str]) -> Submission:
    """The submission.

    Raises:
        SubmissionError: one of the required files was not handed in.
    """
    lacking = [name for name in required if name in submission.missing]
    if lacking:
        raise SubmissionError(
            f"{', '.join(lacking)} was not handed in; with --own nothing of earlier parts is "
            "given; hint: hand in the whole folder"
        )
    return submission


def _is_wrapper(source: Path, members: list[Member], holes: Sequence[str]) -> bool:
    """Whether a folder is a download with one archive and nothing else (Moodle, Gradescope)."""
    if len(members) != 1 or members[0].kind != "file" or not source.is_dir():
        return False
    return members[0].name.lower().endswith(ARCHIVE_NAMES)


# --- finding the work ---------------------------------------------------------------------------


def _join(root: str, name: str) -> str:
    return f"{root}/{name}" if root else name


def _candidates(names: Sequence[str], holes: Sequence[str]) -> dict[str, dict[str, str]]:
    """Possible roots: root -> {hole: name}. A hole lies at its path below the root, or directly in
    it."""
    there, roots = set(names), set[str]()
    for name in names:
        for hole in holes:
            if name == hole or name.endswith("/" + hole):
                roots.add(name[: -len(hole)].rstrip("/"))
            if PurePosixPath(name).name == PurePosixPath(hole).name:
                roots.add(name.rpartition("/")[0])
    places = {root: _holes_at(root, there, holes) for root in sorted(roots)}
    return {root: found for root, found in places.items() if found}


def _holes_at(root: str, there: set[str], holes: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for hole in holes:
        base = PurePosixPath(hole).name
        alone = sum(PurePosixPath(other).name == base for other in holes) == 1
        for name in (_join(root, hole), *([_join(root, base)] if alone else [])):
            if name in there:
                found.setdefault(hole, name)
    return found


def _locate(
    source: Path, names: Sequence[str], holes: Sequence[str]
) -> tuple[str, dict[str, str], list[str]]:
    """(root, {hole: name}, notes): the root with most files with holes, then the shallowest."""
    candidates = _candidates(names, holes)
    if not candidates:
        _none_found(source, names, holes)
    ranks = {
        root: (-len(found), len(PurePosixPath(root).parts)) for root, found in candidates.items()
    }
    best = min(ranks.values())
    top = [root for root, rank in ranks.items() if rank == best]
    if len(top) > 1:
        return _scattered(source, names, holes, top)
    others = {name for found in candidates.values() for name in found.values()}
    unused = sorted(others - set(candidates[top[0]].values()))
    notes = [f"further copies are ignored: {_list(unused)}."] if unused else []
    if top[0]:
        notes.insert(0, f"the work was found in {shown(top[0])}/.")
    return top[0], candidates[top[0]], notes


def _scattered(
    source: Path, names: Sequence[str], holes: Sequence[str], top: Sequence[str]
) -> tuple[str, dict[str, str], list[str]]:
    """Takes files that have no common root. Refuses a file that occurs twice, since nobody can tell
    which one counts."""
    found = {}
    for hole in holes:
        base = PurePosixPath(hole).name
        places = [name for name in names if PurePosixPath(name).name == base]
        if len(places) > 1:
            raise SubmissionError(
                f"{shown(source.name)} holds the work more than once, in "
                f"{_list([root or '.' for root in top])}; hint: hand in one copy"
            )
        if places:
            found[hole] = places[0]
    return "", found, [f"the files were in different folders: {_list(list(found.values()))}."]


def _none_found(source: Path, names: Sequence[str], holes: Sequence[str]) -> NoReturn:
    bases = [PurePosixPath(hole).name for hole in holes]
    what = f"none of {', '.join(bases)} found in {shown(source.name)}; it holds: {_list(names)}"
    archives = [name for name in names if name.lower().endswith(ARCHIVE_NAMES)]
    if archives:
        raise SubmissionError(f"{what}; hint: hand in {shown(archives[0])} itself")
    raise SubmissionError(what + _close_hint(names, bases))


def _close_hint(names: Sequence[str], bases: Sequence[str]) -> str:
    have = [PurePosixPath(name).name for name in names]
    for base in bases:
        if close := difflib.get_close_matches(base, have, 1, 0.75):
            return f"; hint: rename {shown(close[0])} to {base}"
    return ""


def _refuse_links(source: Path, members: Sequence[Member], wanted: Sequence[str]) -> None:
    """Refuses links and other special files that are wanted files, or lie on the path to one."""
    for member in members:
        if member.kind == "file":
            continue
        if any(name == member.name or name.startswith(member.name + "/") for name in wanted):
            raise SubmissionError(
                f"{shown(source.name)}: {shown(member.name)} is {member.kind}, not a plain "
                "file; hint: hand in the file itself"
            )


def _take(source: Path, member: Member) -> bytes:
    if member.size > MAX_FILE:
        raise SubmissionError(
            f"{shown(member.name)} has {member.size:,} bytes; the limit is {MAX_FILE:,}"
        )
    try:
        return member.read()
    except DAMAGE as error:
        let_out(error)
        raise SubmissionError(
            f"{shown(source.name)}: {shown(member.name)} cannot be read: "
            f"{shown(str(getattr(error, 'strerror', None) or error))}; {PACK_HINT}"
        ) from error


def _manifest(member: Member) -> bytes:
    """The manifest's content; empty if it can't be read, which is no reason to refuse the work."""
    try:
        return member.read() if member.size <= LARGEST else b""
    except DAMAGE as error:
        let_out(error)
        return b""


def _compare(
    root: str, by_name: dict[str, Member], found: dict[str, str], pristine: Path
) -> tuple[list[str], list[str]]:
    """(files that differ from the pristine ones, files that are missing from the submission),
    sorted."""
    known = {
        path.relative_to(pristine).as_posix(): path
        for path in pristine.rglob("*")
        if path.is_file() and not ignored(path.relative_to(pristine).as_posix())
    }
    changed, extra = [], []
    inside = len(root) + 1 if root else 0
    for name, member in sorted(by_name.items()):
        path = name[inside:] if name.startswith(root) else name
        if name in found.values():
            continue
        if path not in known or _join(root, path) != name:
            extra.append(name)
        elif path not in found and not _same(member, known[path]):
            changed.append(path)
    return changed, extra


def _same(member: Member, path: Path) -> bool:
    """Whether the contents agree, line endings aside."""
    if member.kind != "file" or member.size > 2 * path.stat().st_size + 2:
        return False
    try:
        return member.read().replace(b"\r\n", b"\n") == path.read_bytes().replace(b"\r\n", b"\n")
    except DAMAGE as error:
        let_out(error)
        return False


# --- what the report says -----------------------------------------------------------------------


def _shorten(names: Sequence[str]) -> list[str]:
    more = [f"... and {len(names) - SHOWN} more"] if len(names) > SHOWN else []
    return [shown(name) for name in names[:SHOWN]] + more


def _list(names: Sequence[str]) -> str:
    return ", ".join(_shorten(names))


def _text_notes(taken: dict[str, bytes], pristine: Path) -> list[str]:
    notes = []
    for name, content in sorted(taken.items()):
        notes += [f"{name} {fact}." for fact in _text_facts(content)]
        own = pristine / name
        if own.is_file() and own.read_bytes() == content:
            notes.append(f"{name} is unchanged: none of its tasks is begun.")
    return notes


def _text_facts(content: bytes) -> Iterator[str]:
    if not content.strip():
        yield "is empty"
    if content.startswith(b"\xef\xbb\xbf"):
        yield "begins with a UTF-8 byte order mark"
    if b"\r\n" in content:
        yield "has Windows line endings (CRLF)"
    if b"\0" in content:
        yield f"holds a NUL byte at offset {content.index(0)}, expected UTF-8 text"
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        yield f"is not UTF-8 text: byte 0x{content[error.start]:02x} at offset {error.start}"


def _rest_notes(
    members: Sequence[Member],
    missing: Sequence[str],
    changed: Sequence[str],
    extra: Sequence[str],
) -> list[str]:
    notes = []
    if missing:
        notes.append(f"not handed in, so graded as the skeleton: {', '.join(missing)}.")
    changed = [name for name in changed if not name.endswith(".md")]  # those are for people
    if changed:
        notes.append(f"changed, but the course's own are used: {_list(changed)}.")
    if extra:
        notes.append(f"ignored, since they are not files of the assignment: {_list(extra)}.")
    passed = Counter(_reason(member.name) for member in members if ignored(member.name))
    passed.pop(".vscode", None)  # it comes with the assignment
    if passed:
        what = [f"{name} ({count})" for name, count in sorted(passed.items())]
        notes.append(f"ignored, by number of files: {_list(what)}.")
    return notes


def _reason(name: str) -> str:
    known = [part for part in name.split("/") if part in IGNORED]
    base = name.rpartition("/")[2]
    return known[0] if known else "._*" if base.startswith("._") else "*" + Path(base).suffix


def _sha256(taken: dict[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, content in sorted(taken.items()):
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()
