"""Keeps reports for later runs, by everything that a report depends on."""

from __future__ import annotations

import contextlib
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from grader.batch.job import Site
from grader.building import tree
from grader.report.model import Report
from grader.report.stored import StoredError, read_report


@dataclass(frozen=True)
class ReportCache:
    """The reports in a folder, by one rubric.

    Attributes:
        folder: holds a file a report; None for no cache.
        rubric: digest of the rubric.
    """

    folder: Path | None
    rubric: str

    def read(self, sha256: str, site: Site) -> Report | None:
        """The whole report on the submission of this digest, made on a site like this one; None if
        there is none, or its file is damaged."""
        path = self._path(sha256, site)
        if path is None:
            return None
        try:
            report = read_report(path)
        except (StoredError, OSError):
            return None
        os.utime(path)
        return report if report.complete and report.sha256 == sha256 else None

    def write(self, sha256: str, report: Report, site: Site) -> None:
        """Keeps a report, unless the grader itself failed in it.

        Raises:
            OSError: the file can't be written.
        """
        path = self._path(sha256, site)
        if path and not report.has_errors:
            report.write(path)

    def _path(self, sha256: str, site: Site) -> Path | None:
        if self.folder is None:
            return None
        known = (sha256, self.rubric, site.grader, site.chain)
        return self.folder / f"{hashlib.sha256(repr(known).encode()).hexdigest()}.json"


def cache_folder() -> Path:
    """The folder of reports that runs share by default."""
    return tree.cache_folder().parent / "graded"


def trim_cache(folder: Path, most: int = 20_000) -> None:
    """Removes the reports that were used longest ago, until `most` are left."""
    with contextlib.suppress(OSError):
        files = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime)
        for path in files[: max(0, len(files) - most)]:
            path.unlink(missing_ok=True)
