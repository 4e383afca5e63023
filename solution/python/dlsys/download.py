"""Files from the network: from one of several mirrors, resumed, checked, and never half a file."""

import contextlib
import gzip
import hashlib
import http.client
import os
import queue
import secrets
import sys
import threading
import time
import urllib.error
import urllib.request
import zlib
from pathlib import Path
from typing import NamedTuple

FIRST_BYTE_S = 2.8  # over all mirrors: without a network, give up in under 3 s
STALL_S = 10.0  # after the first byte: the longest silence
RESUMES = 5  # attempts at one mirror, as long as each brings bytes
CHUNK = 1 << 16  # bytes
ORPHAN_S = 86_400  # a .part file of this age belongs to a process that was killed


class DataError(ValueError):
    """The data is missing or not what it should be; the message names the file."""


class Remote(NamedTuple):
    """A file on the mirrors: its name, and the md5 of its bytes, or of what they unpack to."""

    name: str
    md5: str
    of_content: bool = False


def fetch(folder, files, mirrors):
    """Brings files, Remotes, from mirrors (addresses that end in a slash) into a folder.

    Raises:
        DataError, OSError: one could not be had; there is no half a file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tried = _Mirrors(mirrors)
    for file in files:
        _fetch(folder, file, tried)


def read_bytes(path):
    """The bytes of a file, unpacked where they are of gzip.

    Raises:
        DataError: it can't be read.
    """
    try:
        data = Path(path).read_bytes()
        return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    except (OSError, EOFError, zlib.error) as error:  # a bad gzip file is an OSError too
        reason = getattr(error, "strerror", None) or str(error)
        raise DataError(
            f"{path}: cannot be read: {reason}; hint: delete it and fetch it again"
        ) from error


class _Mirrors:
    """The mirrors, those that failed last, and how long to wait for an answer from one."""

    def __init__(self, mirrors):
        self.order = list(mirrors)
        self.deadline = time.monotonic() + FIRST_BYTE_S
        self.met = False  # a first byte has come: there is a network

    def seconds(self, untried):
        """A share of the budget for the first byte; STALL_S once one has come."""
        share = (self.deadline - time.monotonic()) / untried
        return STALL_S if self.met else max(0.05, share)


def _fetch(folder, file, mirrors):
    final = folder / file.name
    part, reasons = _claim_part(final), []
    try:
        for tried, mirror in enumerate(list(mirrors.order)):
            try:
                _fetch_from(mirror + final.name, part, mirrors, len(mirrors.order) - tried)
                _verify(part, file)
                os.replace(part, final)
                return
            except (OSError, http.client.HTTPException, DataError) as error:
                reasons.append(f"{mirror.split('/')[2]}: {getattr(error, 'reason', error)}")
                mirrors.order.sort(key=mirror.__eq__)  # stable: the failed one goes last
    finally:
        _release_part(part, final)
    raise DataError(f"{final.name} could not be downloaded: {'; '.join(reasons)}")


def _claim_part(final):
    """A .part file of this process alone; it takes over what an earlier attempt left.

    A rename is atomic, so of several processes only one takes the leftover.
    """
    own = final.with_name(f"{final.name}.{secrets.token_hex(4)}.part")
    with contextlib.suppress(OSError):
        for orphan in final.parent.glob(final.name + ".*.part"):
            if time.time() - orphan.stat().st_mtime > ORPHAN_S:
                orphan.unlink()
    with contextlib.suppress(OSError):
        os.replace(final.with_name(final.name + ".part"), own)
    return own


def _release_part(part, final):
    """Leave an unfinished part, when there is one, for the next attempt to resume."""
    with contextlib.suppress(OSError):
        os.replace(part, final.with_name(final.name + ".part"))


def _verify(part, file):
    try:
        content = read_bytes(part) if file.of_content else part.read_bytes()
        found = hashlib.md5(content, usedforsecurity=False).hexdigest()
    except DataError:
        found = "not a gzip file"
    if found != file.md5:
        part.unlink()
        raise DataError(f"wrong checksum: got {found}, expected {file.md5}")


def _fetch_from(url, part, mirrors, untried):
    """Bring `part` to its full length from one mirror, resuming while that brings bytes."""
    for _ in range(RESUMES):
        before = part.stat().st_size if part.exists() else 0
        try:
            if _stream(url, part, before, mirrors, untried):
                return
            reason = "the connection closed early"
        except (TimeoutError, ConnectionError) as error:
            reason = str(error)
        if not part.exists() or part.stat().st_size <= before:
            break
    raise DataError(reason)


def _stream(url, part, offset, mirrors, untried):
    """Append the answer to `part`; True when all of it came."""
    try:
        response, chunk = _open(url, offset, mirrors.seconds(untried))
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416 and offset:  # nothing lies behind the offset: _verify decides
            return True
        raise
    mirrors.met = True
    with response, open(part, "ab") as out:
        if response.status != 206:  # the server ignores ranges: start over
            out.truncate(0)
            offset = 0
        total = offset + int(response.headers.get("Content-Length") or 0)
        done = offset
        with _progress(part.name.split(".")[0], total) as show:
            while chunk:
                out.write(chunk)
                done += len(chunk)
                show(done)
                chunk = response.read1(CHUNK)
    return done >= total


def _open(url, offset, seconds):
    """(response, its first bytes), or TimeoutError after `seconds`, even when DNS hangs."""
    answers = queue.Queue()

    def ask():
        try:
            request = urllib.request.Request(url, headers={"User-Agent": "dlsys"})
            if offset:
                request.add_header("Range", f"bytes={offset}-")
            response = urllib.request.urlopen(request, timeout=STALL_S)
            answers.put((response, response.read1(CHUNK)))
        except Exception as error:
            answers.put(error)

    threading.Thread(target=ask, daemon=True).start()
    try:
        answer = answers.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError(f"no answer within {seconds:.1f} s") from None
    if isinstance(answer, Exception):
        raise answer
    return answer


@contextlib.contextmanager
def _progress(label, total):
    """A function of the bytes done; it draws a bar on stderr, only on a terminal."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn
    except ImportError:
        yield lambda done: print(f"\r{label} {done / max(total, 1):4.0%}", end="", file=sys.stderr)
        print(file=sys.stderr)
        return
    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn()
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(label, total=total or None)
        yield lambda done: bar.update(task, completed=done)
