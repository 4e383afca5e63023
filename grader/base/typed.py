"""Decodes what a file holds into types, by msgspec. Errors name the table, the key and the value.

A `Meta` may say more: `extra={"expected": ...}` names what a value is where its type alone does
not, `extra={"hint": ...}` what to write.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, inspect

_T = TypeVar("_T")

FINITE = sys.float_info.max  # neither infinity nor NaN lies between it and 0
#: A number from 0 on.
Amount = Annotated[float, Meta(ge=0, le=FINITE)]
Positive = Annotated[float, Meta(gt=0, le=FINITE)]
#: A text that is not empty.
Text = Annotated[str, Meta(pattern=r"\S", extra={"expected": "a non-empty string"})]

_MESSAGE = re.compile(r"(.*?)(?: - at (`key` in )?`\$(.*)`)?", re.DOTALL)
_STEP = re.compile(r"\.([^.\[]+)|\[(?:(\d+)|\.\.\.)\]")
_NAMED = re.compile(r"Object (missing required|contains unknown) field `(.*)`", re.DOTALL)
_MOST = 40  # characters of a value that is shown

_Path = tuple[Any, ...]  # keys of objects, indices of lists; Ellipsis: a key that isn't told


def typed(raw: Any, kind: type[_T], where: str = "") -> _T:
    """What a file holds, as `kind`; `where` names the table that it is, in messages.

    Raises:
        ValueError: it is something else; the message names table, key and value.
    """
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        raise ValueError(_said(str(error), raw, kind, where)) from error


def _said(message: str, raw: Any, kind: Any, where: str) -> str:
    told = _MESSAGE.fullmatch(message)
    assert told
    is_key = bool(told[2])
    path = _full((*_steps(told[3] or ""), *([...] if is_key else [])), raw, kind, message)
    node, extra = _expected(inspect.type_info(kind), path, is_key)
    if named := _NAMED.fullmatch(told[1]):
        return _of_field(named, node, _place(path, raw, where))
    *above, last = path or ("the file",)
    verb, value = "is", list(_values(path, raw))[-1]
    if is_key:
        last, verb, value = "", "has", last
    elif isinstance(last, int):
        *above, last = above
        verb = "holds"
    expected = extra.get("expected") or _noun(node)
    hint = f"; hint: {extra['hint']}" if "hint" in extra else ""
    subject = f"{_place(above, raw, where)}{last}".strip()
    return f"{subject} {verb} {_shown(value)}, expected {expected}{hint}"


def _of_field(named: re.Match[str], node: Any, place: str) -> str:
    """The message for a missing key, or for one that the table does not have."""
    kinds = {field.encode_name: field.type for field in node.fields}
    name = named[2]
    if named[1] == "missing required":
        inner, _ = _expected(kinds[name], (), is_key=False)
        return f"{place}{f'[{name}]' if _noun(inner) == _TABLE else name} is missing"
    return f"{place or 'the file '}has the unknown key {name!r}; hint: one of {', '.join(kinds)}"


def _shown(value: Any) -> str:
    text = value.isoformat() if isinstance(value, date) else repr(value)
    return text if len(text) <= _MOST else f"{text[:_MOST]}..."


def _steps(path: str) -> Iterator[Any]:
    for step in _STEP.finditer(path):
        yield step[1] or (int(step[2]) if step[2] else ...)


def _full(path: _Path, raw: Any, kind: Any, message: str) -> _Path:
    """The path with the keys that msgspec omits, found by decoding each key by itself."""
    for depth in range(len(path)):
        if path[depth] is Ellipsis:
            *_, table = _values(path[:depth], raw)
            alone = ((key, _with(raw, path[:depth], {key: table[key]})) for key in table)
            key = next(key for key, one in alone if _fault(one, kind) == message)
            path = (*path[:depth], key, *path[depth + 1 :])
    return path


def _fault(raw: Any, kind: Any) -> str:
    try:
        msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        return str(error)
    return ""


def _with(raw: Any, path: _Path, value: Any) -> Any:
    """A copy of `raw` with another value at a path."""
    if not path:
        return value
    copy = raw.copy()
    copy[path[0]] = _with(raw[path[0]], path[1:], value)
    return copy


def _values(path: _Path, raw: Any) -> Iterator[Any]:
    """The file, and each value along a path in it."""
    yield raw
    for step in path:
        raw = raw[step]
        yield raw


def _place(path: Sequence[Any], raw: Any, where: str) -> str:
    """`[table] `, or `check 'relu': ` or `entries[3]: ` in a list; "" for the file."""
    for depth, value in enumerate(_values(tuple(path), raw)):
        if depth and isinstance(path[depth - 1], int) and isinstance(value, Mapping):
            kind = str(path[depth - 2])
            name = value.get("check", value.get("name") if kind.endswith("check") else None)
            return f"check {name!r}: " if name else f"{kind}[{path[depth - 1]}]: "
    tables = ".".join(str(step) for step in (where, *path) if step)
    return f"[{tables}] " if tables else ""


def _expected(node: Any, path: _Path, is_key: bool) -> tuple[Any, Mapping[str, str]]:
    """The type expected at a path, and the `extra` of its Meta."""
    extra: Mapping[str, str] = {}
    steps = list(path)
    while True:
        if isinstance(node, inspect.Metadata):
            node, extra = node.type, node.extra or {}
        elif isinstance(node, inspect.UnionType):
            node = next(each for each in node.types if not isinstance(each, inspect.NoneType))
        elif not steps:
            return node, extra
        else:
            step, extra = steps.pop(0), {}
            if isinstance(node, inspect.DictType):
                node = node.key_type if is_key and not steps else node.value_type
            elif hasattr(node, "fields"):
                node = next(each.type for each in node.fields if each.encode_name == step)
            else:
                node = node.item_type


_TABLE = "a table"
_NOUNS: dict[type, str] = {
    inspect.StrType: "a string",
    inspect.IntType: "an integer",
    inspect.FloatType: "a number",
    inspect.BoolType: "true or false",
    inspect.ListType: "a list",
    inspect.VarTupleType: "a list",
}


def _noun(node: Any) -> str:
    if isinstance(node, inspect.LiteralType):
        *names, last = map(str, node.values)
        return f"{', '.join(names)} or {last}"
    noun = _NOUNS.get(type(node), _TABLE)
    if getattr(node, "gt", None) is not None:
        return f"{noun} above {node.gt:g}"
    if getattr(node, "ge", None) is None:
        return noun
    most = "on" if node.le is None or node.le == FINITE else f"to {node.le:g}"
    return f"{noun} from {node.ge:g} {most}"
