"""Reads a child's replies with suspicion: anything that runs in the child may have written them.

Everything is bounded here, where it is received. Promises of the worker do not count, since student
code shares its process.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from grader.base.printable import plain
from grader.student.worker import DTYPES, FRAMES, MAX_MESSAGE, MAX_NAME, MAX_TEXT, MAX_TYPES

MAX_HEADER = 8 << 20  # bytes
MAX_VALUES = 100_000  # in a header: each takes some hundred bytes of memory
_MAX_DEPTH = 40  # of containers in a reply: more than the worker sends
_MAX_DIGITS = 1300  # of an int, a few more than the worker sends
_MAX_FLOAT = 40  # characters

Array = np.ndarray[Any, Any]


class ChildError(Exception):
    """The student's code did something wrong; the message is one sentence.

    Attributes:
        doing: the instruction that ran.
        output: what the child had printed by then, after `grader.student.pipe.trimmed`.
        importing: the module whose import ended the child.
    """

    doing: str = ""
    output: str = ""
    importing: str = ""


class ProtocolError(ChildError):
    """The reply is malformed: something in the child wrote to the grader's pipe."""

    def __init__(self, what: str) -> None:
        super().__init__(f"the process sent a malformed reply: {what}")


@dataclass(frozen=True)
class Opaque:
    """A fetched value of a type that is not sent: its type's name and the start of its repr."""

    type_name: str
    text: str

    def __str__(self) -> str:
        return f"{self.type_name} {self.text}"


_MALFORMED = (
    *(AttributeError, IndexError, KeyError, MemoryError, OverflowError, RecursionError),
    *(TypeError, ValueError),
)


@contextlib.contextmanager
def _suspicious(what: str) -> Iterator[None]:
    try:
        yield
    except _MALFORMED as error:
        raise ProtocolError(f"{what} ({type(error).__name__})") from error


def _demand(condition: bool, what: str) -> None:
    if not condition:
        raise ProtocolError(what)


def parse_header(data: bytearray, nonce: str, body: int) -> tuple[dict[str, Any], list[Array]]:
    """The header, and its arrays, not filled yet. Their bytes are exactly `body`.

    Raises:
        ProtocolError: the header does not follow the protocol.
    """
    with _suspicious("its header is not as agreed"):
        # Counted before they are made: every value but the first stands behind one of these.
        _demand(sum(map(data.count, (b",", b":", b"[", b"{"))) <= MAX_VALUES, "too many values")
        header = _read_json(data.decode("ascii"))
        _demand(type(header) is dict, "its header is no object")
        _demand(header["id"] == nonce, "it answers no question")
        specs = [(dtype, tuple(shape)) for dtype, shape in header["arrays"]]
        for dtype, shape in specs:
            _demand(dtype in DTYPES, "an array has an unknown type")
            _demand(all(type(n) is int and n >= 0 for n in shape), "an array has an odd shape")
        sizes = [math.prod(shape) * np.dtype(dtype).itemsize for dtype, shape in specs]
        _demand(sum(sizes) == body, "its arrays do not fill it")
        return header, [np.empty(shape, dtype) for dtype, shape in specs]


def _read_json(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_object, parse_int=_int, parse_float=_float)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    _demand(len(found) == len(pairs), "a name stands twice in it")
    return found


def _int(digits: str) -> int:
    _demand(len(digits) <= _MAX_DIGITS, "a number is too long")
    return int(digits)


def _float(digits: str) -> float:
    """A float. NaN and the infinities have names of their own, since a number in JSON must not
    become one."""
    _demand(len(digits) <= _MAX_FLOAT, "a number is too long")
    value = float(digits)
    _demand(math.isfinite(value), "a number is too large")
    return value


def parse_reply(
    header: dict[str, Any], arrays: list[Array], count: int
) -> tuple[list[Any], tuple[int, tuple[str, ...], str, str] | None]:
    """The fetched values, and the error: index among `count`, types, message, traceback.

    Raises:
        ProtocolError: the reply does not follow the protocol.
    """
    with _suspicious("its values are not as agreed"):
        error = header["error"]
        if error is None:
            return [_decode(value, arrays, 0) for value in header["values"]], None
        index, names = error["index"], error["types"]
        _demand(type(index) is int and 0 <= index < count, "it names no instruction")
        _demand(type(names) is list and bool(names), "its exception has no type")
        types = tuple(_brief(name) for name in names[:MAX_TYPES])
        return [], (index, types, plain(error["message"][:MAX_MESSAGE]), _traceback(error))


def _brief(text: str) -> str:
    return plain(text[:MAX_NAME])


def _traceback(error: dict[str, Any]) -> str:
    frames, skipped = error["frames"], error["skipped"]
    _demand(type(frames) is list and len(frames) <= sum(FRAMES), "its traceback is too long")
    lines = []
    for file, line, name, source in frames:
        lines.append(f"{_brief(file)}:{_counted(line)} in {_brief(name)}\n    {_brief(source)}")
    if _counted(skipped):
        lines.insert(FRAMES[0], f"[... {skipped:d} more ...]")
    return "\n".join(lines)


def _counted(value: Any) -> int:
    _demand(type(value) is int and abs(value) < 1 << 40, "its traceback has no numbers")
    return int(value)


def _decode(value: Any, arrays: list[Array], depth: int) -> Any:
    """The local value that an encoded value of a reply stands for."""
    _demand(depth <= _MAX_DEPTH, "a value is nested too deeply")
    if isinstance(value, str):
        _demand(len(value) <= MAX_TEXT, "a string is too long")
        return value.encode("utf-8", "replace").decode("utf-8")
    if value is None or isinstance(value, (bool, int, float)):
        return value
    ((kind, content),) = value.items()
    if kind in ("a", "g", "b"):
        _demand(type(content) is int and content >= 0, "an array has no number")
        return _decode_array(kind, arrays[content])
    if kind == "d":
        pairs = [(_decode(k, arrays, depth + 1), _decode(v, arrays, depth + 1)) for k, v in content]
        return dict(pairs)
    if kind == "o":
        return Opaque(*(_brief(word) for word in content))
    if kind == "e":
        return ...
    _demand(kind in ("l", "t") and type(content) is list, "a value is of an unknown kind")
    items = [_decode(item, arrays, depth + 1) for item in content]
    return items if kind == "l" else tuple(items)


def _decode_array(kind: str, array: Array) -> Any:
    if kind == "a":
        return array
    if kind == "b":
        _demand(array.dtype == np.uint8 and array.ndim == 1, "bytes are no bytes")
        return array.tobytes()
    _demand(array.shape == (), "a scalar has a shape")
    return array[()]
