"""Adds source lines and words to the findings of the checked build; prints them as JSON.

Stands alone and runs in the sandbox: it reads the debug information of a library that was made from
a student's source. Run it in the tree where that library was built:

    python -I resolve.py EMULATOR FINDINGS LIBRARY

EMULATOR is the folder of the emulated GPU's programs, which can read the file FINDINGS.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from typing import Any

KEPT = 16  # findings
TEXT = 500  # characters of each text


def with_own_library(value: Any, library: str) -> Any:
    """An entry whose sites all lie in `library`, so that no other file is opened for them."""
    if isinstance(value, list):
        return [with_own_library(item, library) for item in value]
    if not isinstance(value, dict):
        return value
    if "module" in value:
        own = os.path.basename(str(value["module"])) == os.path.basename(library)
        return {"module": library, "place": value.get("place", 0)} if own else None
    return {name: with_own_library(item, library) for name, item in value.items()}


def below(path: str) -> str:
    """A path relative to the working folder, if it is below it."""
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def place(at: Any) -> list[Any] | None:
    """[file, line], or None."""
    return [below(at.file)[:TEXT], at.line] if at else None


def described(finding: Any, words: Any, sentence: Any) -> dict[str, Any]:
    """A finding in the form that its reader expects."""
    other = finding.other.at if finding.other else None
    return {
        "kind": finding.kind,
        "title": words.title,
        "kernel": (finding.kernel or "")[:TEXT],
        "block": list(finding.block_index or ()),
        "thread": list(finding.thread_index or ()),
        "at": place(finding.at),
        "other": place(other),
        "sentence": sentence(finding)[:TEXT],
        "cause": words.cause[:TEXT],
        "hint": words.hint[:TEXT],
        "count": finding.count,
    }


def main() -> None:
    """Prints {"found": findings, "more": how many were left out} as JSON."""
    emulator, path, library = sys.argv[1:4]
    sys.path.insert(0, emulator)
    from findings.kinds import WORDS  # type: ignore[import-not-found]
    from findings.reading import read_report  # type: ignore[import-not-found]
    from findings.sentences import sentence  # type: ignore[import-not-found]

    with open(path) as file:
        entries = [with_own_library(json.loads(line), library) for line in file]
    known = [entry for entry in entries if entry["kind"] in WORDS]
    with tempfile.NamedTemporaryFile("w") as own:
        own.writelines(json.dumps(entry) + "\n" for entry in known)
        own.flush()
        wrong = [finding for finding in read_report(own.name) if not finding.is_advice]
    found = [described(finding, WORDS[finding.kind], sentence) for finding in wrong[:KEPT]]
    print(json.dumps({"found": found, "more": len(wrong) - len(found)}))


if __name__ == "__main__":
    main()
