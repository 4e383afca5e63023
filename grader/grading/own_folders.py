"""Leaves the grader's own folders out of what a report tells of a submission.

Its reader has none of them: the kit, the cache of what it has built, the folder of a graded tree.
What names a file there is told by the file's name alone.
"""

from __future__ import annotations

import functools
import re
from typing import Any

from grader.building.tree import KIT, cache_folder
from grader.sandbox.scratch import PREFIX


@functools.cache
def _paths(*folders: str) -> re.Pattern[str]:
    """Finds paths that begin with one of these folders, or with a scratch folder."""
    known = "|".join(re.escape(folder) for folder in folders)
    scratch = rf"(?:/[\w.+-]+)*/{re.escape(PREFIX)}\w+"
    return re.compile(rf"(?<![\w.])(?:(?:{known})|{scratch})(?P<rest>/[^\s'\"`:;,()<>\[\]]*|\b)")


def without_folders(value: Any) -> Any:
    """A text, or what holds texts, with files of the grader's folders told by their names."""
    if isinstance(value, list):
        return [without_folders(item) for item in value]
    if isinstance(value, dict):
        return {name: without_folders(item) for name, item in value.items()}
    if not isinstance(value, str) or "/" not in value:
        return value
    paths = _paths(str(KIT), str(cache_folder().parent))
    return paths.sub(lambda found: found["rest"].rstrip("/").rpartition("/")[2] or "...", value)
