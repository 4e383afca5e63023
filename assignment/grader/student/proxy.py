"""Proxies that read like local objects, and the queue of instructions for the real ones.

A subclass decides where instructions run: in a child process, see remote.py, or in this one, see
grader/status/here.py.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from grader.student.reply import ChildError, Opaque, ProtocolError
from grader.student.worker import BUILTINS, DTYPES

__all__ = [
    "BUILTINS",
    "MOST_FETCHED",
    "ChildError",
    "Instruction",
    "Opaque",
    "Proxies",
    "Proxy",
    "StudentError",
]

#: Bytes of the arrays in an answer, where who asks does not say how many are expected.
MOST_FETCHED = 64 << 20
#: Items of a sequence that can be told, or gone through.
_LONGEST, _MOST_ITEMS = 1 << 40, 100_000

#: An instruction that failed: its index, the exception's types, message and traceback.
Fault = tuple[int, tuple[str, ...], str, str]


class StudentError(ChildError):
    """The student's code raised. The child goes on.

    Attributes:
        types: names of the exception's class and its bases.
        message: its text.
        traceback: its frames in the student's files.
    """

    def __init__(self, types: tuple[str, ...], message: str, traceback: str, doing: str) -> None:
        self.types, self.message, self.traceback, self.doing = types, message, traceback, doing
        first = message.strip().partition("\n")[0][:300]
        super().__init__(f"{doing} raised {types[0]}" + (f": {first}" if first else ""))


@dataclass(frozen=True)
class Instruction:
    """One instruction for the child.

    Attributes:
        action: its name in `worker.ACTIONS`, or "fetch" or "drop".
        target: number of the result that it makes.
        args: its arguments, encoded.
        doing: the instruction in words, for error messages.
    """

    action: str
    target: int
    args: list[Any]
    doing: str


_Method = Callable[["Proxy", Any], "Proxy"]


def _operator(action: str, sign: str) -> tuple[_Method, _Method]:
    """The methods of a proxy for an operator with the proxy on the left, and on the right."""

    def left(self: Proxy, other: Any) -> Proxy:
        return self._remote._binary(action, sign, self, other)

    def right(self: Proxy, other: Any) -> Proxy:
        return self._remote._binary(action, sign, other, self)

    return left, right


class Proxy:
    """Stands for an object elsewhere. Operations on it run there, at the next flush.

    It refuses truth and ==, since a proxy has no value: fetch it first. When its last reference
    goes, the object there is dropped.
    """

    __slots__ = ("_number", "_remote", "_words")
    __array_ufunc__ = None  # so that array * proxy comes here
    __hash__ = object.__hash__
    _number: int
    _remote: Proxies
    _words: str

    def __init__(self, remote: Proxies, number: int, words: str) -> None:
        for name, value in (("_remote", remote), ("_number", number), ("_words", words)):
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return self._words

    def __del__(self) -> None:
        self._remote._drop(self._number, self._words)

    def __getattr__(self, name: str) -> Proxy:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._remote._emit("get", [self, name], f"{self._words}.{name}")

    def __setattr__(self, name: str, value: Any) -> None:
        words = f"{self._words}.{name}"
        self._remote._emit("set", [self, name, value], words, f"{words} = {_brief(value)}")

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        named = [f"{name}={_brief(value)}" for name, value in kwargs.items()]
        doing = f"{self._words}({', '.join([*map(_brief, args), *named])})"
        return self._remote._emit("call", [self, list(args), kwargs], f"{self._words}(...)", doing)

    def __getitem__(self, key: Any) -> Proxy:
        return self._remote._emit("item", [self, key], f"{self._words}[{_brief(key)}]")

    def __setitem__(self, key: Any, value: Any) -> None:
        words = f"{self._words}[{_brief(key)}]"
        self._remote._emit("setitem", [self, key, value], words, f"{words} = {_brief(value)}")

    def __iter__(self) -> Iterator[Proxy]:
        """The items of a sequence, as proxies; asks the child for its length."""
        size = self._remote.len(self)
        if size > _MOST_ITEMS:
            self._remote._end(ProtocolError(f"a sequence has {size} items"))
        return iter([self[i] for i in range(size)])

    def __bool__(self) -> bool:
        raise TypeError(f"{self!r} is elsewhere; hint: fetch it first")

    def __eq__(self, other: object) -> bool:
        raise TypeError(f"{self!r} is elsewhere; hint: compare fetched values")

    __add__, __radd__ = _operator("add", "+")
    __sub__, __rsub__ = _operator("sub", "-")
    __mul__, __rmul__ = _operator("mul", "*")
    __truediv__, __rtruediv__ = _operator("truediv", "/")
    __matmul__, __rmatmul__ = _operator("matmul", "@")

    def __neg__(self) -> Proxy:
        return self._remote._emit("neg", [self], f"-{self._words}")


class Proxies(ABC):
    """A queue of instructions for objects elsewhere. One thread at a time may use it.

    Instructions run in order at the next fetch or flush. Every method that runs them raises a
    ChildError. After a StudentError everything stays usable; any other error ends the queue, and
    later calls raise it again. Arrays are copied when they are queued. `after_fetch`, if set, is
    called after every fetch.
    """

    def __init__(self) -> None:
        self._queue: list[Instruction] = []
        self._arrays: list[np.ndarray[Any, Any]] = []
        self._void: dict[int, tuple[tuple[str, ...], str, str, str]] = {}
        self._fatal: ChildError | None = None
        self._doing = ""
        self._next = 0
        self._thread = threading.get_ident()
        self._dropped: list[Instruction] = []  # in other threads
        self.after_fetch: Callable[[], None] | None = None

    @abstractmethod
    def _carry_out(
        self, batch: list[Instruction], arrays: list[np.ndarray[Any, Any]], most: int
    ) -> tuple[list[Any], Fault | None]:
        """Runs instructions; returns the values of their fetches, at most `most` bytes, and what
        failed.

        Raises:
            ChildError: by `_end`, what ends the queue.
        """

    def import_(self, name: str) -> Proxy:
        """A module, imported in the child."""
        return self._emit("import", [name], name.rpartition(".")[2], f"import {name}")

    def builtin(self, name: str) -> Proxy:
        """One of the names in BUILTINS."""
        if name not in BUILTINS:
            raise ValueError(f"{name} is not among {', '.join(sorted(BUILTINS))}")
        return self._emit("builtin", [name], name)

    def put(self, value: Any) -> Proxy:
        """A copy, in the child, of a local value: for example of an array, to slice it there."""
        return self._emit("value", [value], _brief(value))

    def len(self, proxy: Proxy) -> int:
        """The length of a sequence in the child."""
        size = self.fetch(self.builtin("len")(proxy), most=0)
        if type(size) is not int or not 0 <= size < _LONGEST:
            self._end(ProtocolError("a length is none"))
        return size

    def fetch(self, value: Any, most: int = MOST_FETCHED) -> Any:
        """The local value of a proxy, or of a structure with proxies in it.

        Arrays, numpy scalars, plain scalars, strings, bytes, lists, tuples and dicts arrive as they
        are (subclasses as their plain base), anything else as Opaque.

        Raises:
            ChildExcess: the value has more than `most` bytes of arrays and bytes, by the student's
                fault.
        """
        self._queue_up("fetch", 0, [value], f"fetching {_brief(value)}")
        values = self._run(most)
        if len(values) != 1:
            self._end(ProtocolError("it has more or fewer values than asked for"))
        if self.after_fetch is not None:
            self.after_fetch()
        return values[0]

    def fetch_all(self, values: Iterable[Any], most: int = MOST_FETCHED) -> list[Any]:
        """The local values of several proxies, in one round trip."""
        asked = list(values)
        fetched = self.fetch(asked, most)
        if type(fetched) is not list or len(fetched) != len(asked):
            self._end(ProtocolError(f"{len(asked)} values were asked for"))
        return fetched

    def flush(self) -> None:
        """Runs all queued instructions now."""
        self._run()

    @contextlib.contextmanager
    def doing(self, words: str) -> Iterator[None]:
        """Sets the description of the instructions queued inside, for error messages."""
        outer, self._doing = self._doing, words
        try:
            yield
        finally:
            self._doing = outer

    @contextlib.contextmanager
    def deadline(self, seconds: float) -> Iterator[None]:
        """Limits what is queued inside to `seconds` from entry, if the subclass can enforce it."""
        yield

    def now(self) -> float:
        """Seconds, by the clock that deadlines go by."""
        return time.monotonic()

    def _emit(self, action: str, args: list[Any], words: str, doing: str = "") -> Proxy:
        self._next += 1
        self._queue_up(action, self._next, args, doing or words)
        return Proxy(self, self._next, words if len(words) <= 80 else words[:79] + "…")

    def _queue_up(self, action: str, target: int, args: list[Any], doing: str) -> None:
        encoded = [self._encode(arg) for arg in args]
        self._queue.append(Instruction(action, target, encoded, self._doing or doing))

    def _binary(self, action: str, sign: str, left: Any, right: Any) -> Proxy:
        return self._emit(action, [left, right], f"({_brief(left)} {sign} {_brief(right)})")

    def _drop(self, number: int, words: str) -> None:
        """Queues the drop of an object. The garbage collector may call this in any thread at any
        time."""
        drop = Instruction("drop", number, [], f"freeing {words}")
        if threading.get_ident() != self._thread:
            self._dropped.append(drop)
            return
        self._void.pop(number, None)
        self._queue.append(drop)

    def _run(self, most: int = 0, last_word: bool = False) -> list[Any]:
        if self._fatal is not None:
            raise self._fatal
        while self._dropped:
            self._queue.append(self._dropped.pop())
        if not self._queue and not last_word:
            return []
        batch, self._queue = self._queue, []
        arrays, self._arrays = self._arrays, []
        values, fault = self._carry_out(batch, arrays, most)
        if fault is not None:
            self._fail(batch, *fault)
        return values

    def _fail(self, batch: list[Instruction], index: int, *facts: Any) -> NoReturn:
        """Raises the student's error, now and for each result that will never exist."""
        described = (*facts, batch[index].doing)
        self._void |= dict.fromkeys(
            (i.target for i in batch[index:] if i.action != "drop"), described
        )
        raise self._with_output(StudentError(*described))

    def _end(self, fatal: ChildError) -> NoReturn:
        """Ends the queue: raises the error now, and whenever more is asked for."""
        self._fatal = self._with_output(fatal)
        raise fatal from None

    def _with_output(self, error: ChildError) -> ChildError:
        """The error, with the output if the subclass keeps it."""
        return error

    def _encode(self, value: Any) -> Any:
        if value is None or type(value) in (bool, int, float, str):
            return value
        if isinstance(value, Proxy):
            return {"r": self._reference(value)}
        if isinstance(value, np.ndarray):
            return {"a": self._ship(value)}
        if isinstance(value, np.generic):
            return {"g": self._ship(np.asarray(value))}
        if isinstance(value, bytes):
            return {"b": self._ship(np.frombuffer(value, np.uint8))}
        if isinstance(value, dict):
            return {"d": [[self._encode(k), self._encode(v)] for k, v in value.items()]}
        if isinstance(value, (list, tuple)):
            kind = "l" if isinstance(value, list) else "t"
            return {kind: [self._encode(item) for item in value]}
        if isinstance(value, slice):
            return {"s": [self._encode(n) for n in (value.start, value.stop, value.step)]}
        if value is ...:
            return {"e": 0}
        raise TypeError(f"a {type(value).__name__} can't be sent to the child")

    def _reference(self, proxy: Proxy) -> int:
        if proxy._remote is not self:
            raise ValueError(f"{proxy!r} belongs to another child")
        if proxy._number in self._void:
            raise StudentError(*self._void[proxy._number])
        return proxy._number

    def _ship(self, array: np.ndarray[Any, Any]) -> int:
        if array.dtype.name not in DTYPES:
            raise TypeError(f"an array of {array.dtype} can't be sent to the child")
        self._arrays.append(np.array(array, array.dtype.newbyteorder("="), order="C", copy=True))
        return len(self._arrays) - 1


_SHOWN = 9  # elements of a list, for a message of one line


def _brief(value: Any) -> str:
    """A few words for a value in the text of an instruction."""
    if isinstance(value, (np.ndarray, np.generic)) and value.shape:
        return f"{value.dtype} {value.shape}"
    if isinstance(value, slice):
        return ":".join("" if n is None else str(n) for n in (value.start, value.stop, value.step))
    if isinstance(value, dict):
        pairs = itertools.islice(value.items(), _SHOWN)
        words = f"{{{', '.join(f'{_brief(key)}: {_brief(each)}' for key, each in pairs)}}}"
    elif isinstance(value, (list, tuple)):
        inner = ", ".join(_brief(each) for each in value[:_SHOWN])
        words = f"[{inner}]" if isinstance(value, list) else f"({inner}{',' * (len(value) == 1)})"
    else:
        words = repr(value.item() if isinstance(value, np.generic) else value)
    return words if len(words) <= 60 else words[:59] + "…"
