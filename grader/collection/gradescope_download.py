"""Reads what Gradescope exports of an assignment: folders, and the students that they belong to.

The metadata is YAML with Ruby's symbols and sometimes Ruby's objects. It is read as plain lists,
tables and texts: tags are ignored and construct nothing, and what is not needed is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import yaml

from grader.collection.platforms import GRADESCOPE, METADATA, Download, Handed, Part
from grader.collection.unpacking import CollectionError
from grader.submission.archive import shown, some

MAX_METADATA = 64 << 20  # bytes
MAX_DEPTH = 8  # of what is kept

_KEPT = frozenset(("submitters", "created_at", "name", "email", "sid", "utc", "time"))
_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ]+(\d\d:\d\d:\d\d)(?:\.(\d{1,6})\d*)?\s*(Z|UTC|([+-])(\d\d):?(\d\d))?"
)


def gradescope(folder: Path, paths: Sequence[Path]) -> Download:
    """The submissions of an exported folder with these `paths` in it. Each member of a group has
    the group's submission.

    Raises:
        CollectionError: the metadata can't be read.
    """
    known = _metadata(folder / METADATA)
    found = Download()
    folders = {path.name: path for path in paths if path.is_dir()}
    for key, facts in known.items():
        if key not in folders:
            names = some([each["name"] or each["email"] for each in _submitters(facts)])
            found.notes.append(f"{shown(key)} ({names}) is in {METADATA} and has no folder.")
            continue
        found.handed += _members(key, facts, folders[key], found.notes)
    for name in sorted(set(folders) - set(known)):
        if name.startswith("submission_"):
            found.notes.append(f"{shown(name)} is not in {METADATA}, so its student is unknown.")
            own = name.removeprefix("submission_")
            found.handed.append(Handed(GRADESCOPE, name, own, (Part(folders[name]),)))
    return found


def _members(key: str, facts: Any, folder: Path, notes: list[str]) -> Iterator[Handed]:
    own = key.removeprefix("submission_")
    moment = _moment(facts)
    if not moment and isinstance(facts, dict) and facts.get("created_at"):
        notes.append(f"{shown(key)}: its time has no zone or an unknown format, and is not used.")
    people = _submitters(facts)
    if not people:
        notes.append(f"{shown(key)} names no submitters.")
        people = [{"name": "", "email": "", "sid": ""}]
    for number, person in enumerate(people, 1):
        others = [each["name"] or each["email"] for each in people if each is not person]
        yield Handed(
            GRADESCOPE,
            key,
            person["sid"] or (f"{own}-{number}" if others else own),
            (Part(folder),),
            name=person["name"],
            email=person["email"],
            sid=person["sid"],
            submitted=moment,
            notes=(f"one submission with {some(others)}.",) if others else (),
        )


def _submitters(facts: Any) -> list[dict[str, str]]:
    listed = facts.get("submitters") if isinstance(facts, dict) else None
    people = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    return [{key: _text(each.get(key)) for key in ("name", "email", "sid")} for each in people]


def _text(value: Any) -> str:
    return "" if value in ("~", "null") or not isinstance(value, str) else " ".join(value.split())


def _moment(facts: Any) -> str:
    """When it was handed in, in UTC; "" if the metadata has no time with a time zone."""
    text = facts.get("created_at") if isinstance(facts, dict) else ""
    if isinstance(text, dict):  # an object of Rails
        utc = _text(text.get("utc"))
        text = f"{utc} Z" if utc and not _moment({"created_at": utc}) else utc or text.get("time")
    named = _TIME.fullmatch(text.strip()) if isinstance(text, str) else None
    if not named or not named[4]:
        return ""
    offset = timedelta(hours=int(named[6] or 0), minutes=int(named[7] or 0))
    try:
        local = datetime.fromisoformat(f"{named[1]}T{named[2]}")
        zone = timezone(-offset if named[5] == "-" else offset)
        moment = local.replace(microsecond=int((named[3] or "0").ljust(6, "0")), tzinfo=zone)
        return moment.astimezone(timezone.utc).isoformat()
    except (ValueError, OverflowError):
        return ""


# --- YAML as plain data -------------------------------------------------------------------------


def _metadata(path: Path) -> dict[str, Any]:
    """Folder name -> the entries that are kept of its metadata."""
    try:
        if path.stat().st_size > MAX_METADATA:
            raise CollectionError(f"{path.name} is larger than {MAX_METADATA >> 20} MiB")
        events = yaml.parse(path.read_bytes(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        found = _Plain(events).document()
    except OSError as error:
        raise CollectionError(f"{path.name} cannot be read: {error.strerror or error}") from error
    except (yaml.YAMLError, UnicodeError) as error:
        said = " ".join(str(error).split())
        raise CollectionError(
            f"{path.name} is not YAML: {shown(said)}; hint: export the submissions again"
        ) from error
    if not isinstance(found, dict):
        raise CollectionError(f"{path.name} holds no table of submissions")
    return found


class _Plain:
    """Builds lists, tables and texts from a YAML parser's events."""

    def __init__(self, events: Iterator[Any]) -> None:
        self.events, self.anchors = events, dict[str, Any]()

    def document(self) -> Any:
        for event in self.events:
            if isinstance(event, yaml.NodeEvent):
                value = self._value(event, 0)
                for _ in self.events:  # whatever follows has to be YAML too
                    pass
                return value
        return None

    def _value(self, event: Any, depth: int) -> Any:
        if isinstance(event, yaml.AliasEvent):
            return self.anchors.get(event.anchor or "")
        if isinstance(event, yaml.ScalarEvent):
            value: Any = event.value
        elif depth > MAX_DEPTH:
            self._skip(event)
            value = None
        elif isinstance(event, yaml.SequenceStartEvent):
            value = list(self._items(depth))
        else:
            value = self._table(depth)
        if event.anchor:
            self.anchors[event.anchor] = value
        return value

    def _items(self, depth: int) -> Iterator[Any]:
        for event in self.events:
            if isinstance(event, yaml.SequenceEndEvent):
                return
            yield self._value(event, depth + 1)

    def _table(self, depth: int) -> dict[str, Any]:
        table = {}
        for event in self.events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            key = self._value(event, depth + 1)
            name = key.strip(":") if isinstance(key, str) else ""
            value = next(self.events)
            if depth == 0 or name in _KEPT:
                table[name] = self._value(value, depth + 1)
            else:
                self._skip(value)
        return table

    def _skip(self, event: Any) -> None:
        """Skips a value, however deep."""
        depth = 0
        while True:
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth <= 0:
                return
            event = next(self.events)
