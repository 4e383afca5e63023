"""Drives a student's code in a child process through proxies that read like local objects."""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import secrets
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

import numpy as np

from grader import sandbox
from grader.sandbox import Limits, OutputLimitError, plain

WORKER = Path(__file__).with_name("worker.py")
DTYPES = frozenset(
    {
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64"),
    }
)
BUILTINS = frozenset(
    ("len", "list", "tuple", "dict", "id", "type", "isinstance", "sorted", "getattr")
)

_PREFIX = struct.Struct("<IQ")  # lengths of a frame's header and body; worker.py describes both
_MAX_HEADER = 8 << 20
_MAX_DEPTH = 40  # of containers in a reply: more than the worker sends
_MAX_TEXT = 1 << 20
_GRACE = 1.0  # seconds between the end of a child's pipe and its own
_PIPE_BYTES = 1 << 20
_F_SETPIPE_SZ = 1031


class StartError(RuntimeError):
    """The worker did not come up: the grader's or the machine's fault, no student code ran."""


class ChildError(Exception):
    """What the student's code did wrong, in one sentence.

    `doing` tells which instruction was running, `output` what the child had printed by then.
    """

    doing: str = ""
    output: str = ""


class StudentError(ChildError):
    """The student's code raised. The child lives on.

    `types` names the exception's class and its bases, `message` is its text, `traceback` its
    frames in the student's files.
    """

    def __init__(self, types: tuple[str, ...], message: str, traceback: str, doing: str) -> None:
        self.types, self.message, self.traceback, self.doing = types, message, traceback, doing
        first = message.strip().partition("\n")[0][:300]
        super().__init__(f"{doing} raised {types[0]}" + (f": {first}" if first else ""))


class ChildDied(ChildError):
    """The process ended, or closed its pipe, before its last word. `rc` as of subprocess."""

    def __init__(self, rc: int | None, doing: str) -> None:
        self.rc, self.doing = rc, doing
        super().__init__(f"the process {_death(rc)}; it was running: {doing}")


class ChildTimeout(ChildError):
    """The child did not answer in time."""

    def __init__(self, seconds: float, doing: str, kind: str = "") -> None:
        self.seconds, self.doing = seconds, doing
        super().__init__(f"not finished within {seconds:g} s{kind}: {doing}")


class OutputFlood(ChildError):
    """The child printed more than `limit` bytes."""

    def __init__(self, limit: int, doing: str) -> None:
        self.limit, self.doing = limit, doing
        super().__init__(f"printed more than {limit} bytes while running: {doing}")


class ProtocolError(ChildError):
    """The child's reply is malformed: something in it wrote to the grader's pipe."""

    def __init__(self, what: str) -> None:
        super().__init__(f"the process sent a malformed reply: {what}")


@dataclass(frozen=True)
class Opaque:
    """A fetched value of a type that is not sent: its type's name and the start of its repr."""

    type_name: str
    text: str


@dataclass(frozen=True)
class _Instruction:
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
    """Stands for an object in the child. What is done to it is done there, at the next flush.

    Truth and == are refused, since a proxy has no value: fetch first. Dropping the last reference
    drops the object in the child.
    """

    __slots__ = ("_number", "_remote", "_words")
    __array_ufunc__ = None  # so that array * proxy comes here
    __hash__ = object.__hash__
    _number: int
    _remote: Remote
    _words: str

    def __init__(self, remote: Remote, number: int, words: str) -> None:
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
        return iter([self[i] for i in range(self._remote.len(self))])

    def __bool__(self) -> bool:
        raise TypeError(f"{self!r} is in the child; hint: fetch it first")

    def __eq__(self, other: object) -> bool:
        raise TypeError(f"{self!r} is in the child; hint: compare fetched values")

    __add__, __radd__ = _operator("add", "+")
    __sub__, __rsub__ = _operator("sub", "-")
    __mul__, __rmul__ = _operator("mul", "*")
    __truediv__, __rtruediv__ = _operator("truediv", "/")
    __matmul__, __rmatmul__ = _operator("matmul", "@")

    def __neg__(self) -> Proxy:
        return self._remote._emit("neg", [self], f"-{self._words}")


class Remote:
    """A child process and the queue of instructions for it. One thread's, used in a `with`.

    Instructions run at the next fetch, flush, or end of the `with`, in order. Every method that
    runs them raises a ChildError: a StudentError leaves the child usable, any other ends it, and
    is raised again by whatever is asked later. Arrays are copied when they are queued.
    """

    def __init__(
        self,
        python: str | Path,
        sys_path: list[str],
        root: Path,
        limits: Limits | None = None,
        env: Mapping[str, str] | None = None,
        *,
        max_reply: int = 1 << 30,
    ) -> None:
        """`root` is the student's tree and the working folder; `max_reply` is in bytes."""
        self._pipe = _Pipe(python, sys_path, root, limits or Limits(), env, max_reply)
        self._queue: list[_Instruction] = []
        self._arrays: list[np.ndarray[Any, Any]] = []
        self._void: dict[int, tuple[tuple[str, ...], str, str, str]] = {}
        self._fatal: ChildError | None = None
        self._doing = ""
        self._next = 0

    def __enter__(self) -> Remote:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            self._pipe.end()

    @property
    def output(self) -> str:
        """What the child has printed so far, the middle left out."""
        return self._pipe.child.output.text()

    def import_(self, name: str) -> Proxy:
        return self._emit("import", [name], name.rpartition(".")[2], f"import {name}")

    def builtin(self, name: str) -> Proxy:
        """One of the names in BUILTINS."""
        if name not in BUILTINS:
            raise ValueError(f"{name} is not among {', '.join(sorted(BUILTINS))}")
        return self._emit("builtin", [name], name)

    def put(self, value: Any) -> Proxy:
        """A copy of a local value in the child: an array to slice there, say."""
        return self._emit("value", [value], _brief(value))

    def len(self, proxy: Proxy) -> int:
        size = self.fetch(self.builtin("len")(proxy))
        return size if type(size) is int else self._end(ProtocolError("a length is no int"))

    def fetch(self, value: Any) -> Any:
        """The local value of a proxy, or of a structure with proxies in it.

        Arrays, numpy scalars, plain scalars, strings, bytes, lists, tuples and dicts arrive as
        they are (subclasses as their plain base), anything else as Opaque.
        """
        self._queue_up("fetch", 0, [value], f"fetching {_brief(value)}")
        values = self._run()
        if len(values) != 1:
            self._end(ProtocolError("it has more or fewer values than asked for"))
        return values[0]

    def fetch_all(self, values: Iterable[Any]) -> list[Any]:
        """The local values of several proxies, in one round trip."""
        fetched = self.fetch(list(values))
        return fetched if type(fetched) is list else self._end(ProtocolError("no list"))

    def flush(self) -> None:
        """Runs everything queued, now."""
        self._run()

    @contextlib.contextmanager
    def doing(self, words: str) -> Iterator[None]:
        """Errors of the instructions queued inside say that this was being done."""
        outer, self._doing = self._doing, words
        try:
            yield
        finally:
            self._doing = outer

    @contextlib.contextmanager
    def deadline(self, seconds: float) -> Iterator[None]:
        """What is queued inside must be done `seconds` after entry. Flushes before and after."""
        self.flush()
        self._pipe.await_ready()
        outer = self._pipe.deadline
        self._pipe.deadline = min(outer, (time.monotonic() + seconds, seconds))
        try:
            yield
            self.flush()
        finally:
            self._pipe.deadline = outer

    def close(self) -> None:
        """Runs what is queued, hears the child's last word, and ends it.

        Raises what `flush` raises, ChildDied when the child can no longer answer.
        """
        try:
            self._run(last_word=True)
        finally:
            self._pipe.end()

    def _emit(self, action: str, args: list[Any], words: str, doing: str = "") -> Proxy:
        self._next += 1
        self._queue_up(action, self._next, args, doing or words)
        return Proxy(self, self._next, words if len(words) <= 80 else words[:79] + "…")

    def _queue_up(self, action: str, target: int, args: list[Any], doing: str) -> None:
        encoded = [self._encode(arg) for arg in args]
        self._queue.append(_Instruction(action, target, encoded, self._doing or doing))

    def _binary(self, action: str, sign: str, left: Any, right: Any) -> Proxy:
        return self._emit(action, [left, right], f"({_brief(left)} {sign} {_brief(right)})")

    def _drop(self, number: int, words: str) -> None:
        self._void.pop(number, None)
        self._queue.append(_Instruction("drop", number, [], f"freeing {words}"))

    def _run(self, last_word: bool = False) -> list[Any]:
        if self._fatal is not None:
            raise self._fatal
        if not self._queue and not last_word:
            return []
        batch, self._queue = self._queue, []
        arrays, self._arrays = self._arrays, []
        try:
            header, received = self._pipe.exchange(
                [[i.action, i.target, i.args] for i in batch], arrays
            )
            values, error = _parse_reply(header, received, len(batch))
        except (EOFError, TimeoutError, OutputLimitError, ProtocolError) as stop:
            self._end(self._diagnose(stop, batch))
        if error is not None:
            self._fail(batch, *error)
        return values

    def _fail(self, batch: list[_Instruction], index: int, *facts: Any) -> NoReturn:
        """Raises the student's error, now and for every result that will never be."""
        described = (*facts, batch[index].doing)
        self._void |= dict.fromkeys(
            (i.target for i in batch[index:] if i.action != "drop"), described
        )
        raise self._with_output(StudentError(*described))

    def _diagnose(self, stop: Exception, batch: list[_Instruction]) -> ChildError:
        index = self._pipe.progress()
        known = index is not None and index < len(batch)
        doing = batch[index or 0].doing if known else "nothing (between two calls)"
        limits = self._pipe.child.limits
        if isinstance(stop, TimeoutError):
            return ChildTimeout(self._pipe.deadline[1], doing)
        if isinstance(stop, OutputLimitError):
            return OutputFlood(limits.output, doing)
        if isinstance(stop, ProtocolError):
            stop.doing = doing
            return stop
        rc = self._pipe.farewell()
        if rc is not None and rc < 0 and sandbox.signal_name(-rc) == "SIGXCPU":
            return ChildTimeout(limits.cpu or 0, doing, " of processor time")
        return ChildDied(rc, doing)

    def _end(self, fatal: ChildError) -> NoReturn:
        self._pipe.end()
        self._fatal = self._with_output(fatal)
        raise fatal from None

    def _with_output(self, error: ChildError) -> ChildError:
        error.output = self.output
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


def _brief(value: Any) -> str:
    """A few words for a value in the text of an instruction."""
    if isinstance(value, (np.ndarray, np.generic)) and value.shape:
        return f"{value.dtype} {value.shape}"
    if isinstance(value, slice):
        return ":".join("" if n is None else str(n) for n in (value.start, value.stop, value.step))
    words = repr(value.item() if isinstance(value, np.generic) else value)
    return words if len(words) <= 60 else words[:59] + "…"


def _death(rc: int | None) -> str:
    if rc is None:
        return "closed its reply pipe before the check was over"
    if rc < 0:
        return f"was killed by signal {-rc} ({sandbox.signal_name(-rc)})"
    return f"ended with exit code {rc} before the check was over"


class _Pipe:
    """A worker process and the frames to and from it; `deadline` is (monotonic time, seconds)."""

    def __init__(
        self,
        python: str | Path,
        sys_path: list[str],
        root: Path,
        limits: Limits,
        env: Mapping[str, str] | None,
        max_reply: int,
    ) -> None:
        requests, self._requests = os.pipe()
        self._replies, replies = os.pipe()
        self._progress = tempfile.TemporaryFile()  # noqa: SIM115 closed by _close
        theirs = (requests, replies, self._progress.fileno())
        config = json.dumps({"sys_path": sys_path, "root": str(root)})
        argv = [str(python), "-I", "-B", "-u", str(WORKER), *map(str, theirs), config]
        try:
            self.child = sandbox.start(argv, root, env, limits, theirs)
        except BaseException:
            self._close()
            raise
        finally:
            os.close(requests)
            os.close(replies)
        for fd in (self._requests, self._replies):
            _widen(fd)
        self.deadline = (self.child.deadline, limits.wall)
        self._max_reply = max_reply
        self._ready = self._ended = False

    def await_ready(self) -> None:
        """Waits for the worker's first word; no student code runs before. Raises StartError."""
        if self._ready:
            return
        try:
            self._receive("ready")
            self._ready = True
        except (EOFError, TimeoutError, OutputLimitError, ProtocolError) as error:
            rc = self.farewell()
            self.end()
            raise StartError(
                f"the worker did not start ({type(error).__name__}, exit code {rc}): "
                f"{self.child.output.text().strip()[-2000:]}"
            ) from error

    def exchange(
        self, batch: list[Any], arrays: list[np.ndarray[Any, Any]]
    ) -> tuple[dict[str, Any], list[np.ndarray[Any, Any]]]:
        """Sends a batch and returns its reply's header and arrays."""
        self.await_ready()
        os.pwrite(self._progress.fileno(), bytes(_PREFIX.size), 0)
        nonce = secrets.token_hex(8)
        specs = [[a.dtype.name, a.shape] for a in arrays]
        request = {"id": nonce, "do": batch, "arrays": specs}
        header = json.dumps(request, separators=(",", ":")).encode()
        self._send(_PREFIX.pack(len(header), sum(a.nbytes for a in arrays)) + header)
        for array in arrays:
            self._send(_raw(array))
        reply = self._receive(nonce)
        self.child.collect()
        return reply

    def progress(self) -> int | None:
        """The index of the instruction that the child began last: its word, so only for texts."""
        data = os.pread(self._progress.fileno(), _PREFIX.size, 0)
        index, begun = _PREFIX.unpack(data) if len(data) == _PREFIX.size else (0, 0)
        return index if begun else None

    def farewell(self) -> int | None:
        """The exit code of a child whose pipe has ended; None if the child itself has not."""
        with contextlib.suppress(TimeoutError, OutputLimitError):
            if not self.child.wait(time.monotonic() + _GRACE):
                return self.child.kill()
        return None

    def end(self) -> None:
        """Kills the child and its descendants. Harmless when repeated."""
        self.child.kill()
        self._close()

    def _close(self) -> None:
        if not self._progress.closed:
            self._progress.close()
            os.close(self._requests)
            os.close(self._replies)

    def _send(self, data: bytes | memoryview) -> None:
        self.child.write_all(self._requests, memoryview(data), self.deadline[0])

    def _read(self, size: int) -> bytearray:
        data = bytearray(size)
        self.child.read_into(self._replies, memoryview(data), self.deadline[0])
        return data

    def _receive(self, nonce: str) -> tuple[dict[str, Any], list[np.ndarray[Any, Any]]]:
        size, body = _PREFIX.unpack(self._read(_PREFIX.size))
        if size > _MAX_HEADER or body > self._max_reply:
            raise ProtocolError(f"it claims {size} and {body} bytes, more than allowed")
        header, arrays = _parse_header(self._read(size), nonce, body)
        for array in arrays:
            self.child.read_into(self._replies, _raw(array), self.deadline[0])
        return header, arrays


def _widen(fd: int) -> None:
    """Makes our end of a pipe non-blocking, and on Linux the pipe larger where that is allowed."""
    os.set_blocking(fd, False)
    with contextlib.suppress(OSError):
        if sys.platform == "linux":
            fcntl.fcntl(fd, _F_SETPIPE_SZ, _PIPE_BYTES)


def _raw(array: np.ndarray[Any, Any]) -> memoryview:
    """The bytes of a contiguous array."""
    return array.reshape(-1).view(np.uint8).data if array.size else memoryview(b"")


# What follows reads what the child wrote. Anything may stand there.

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


def _parse_header(
    data: bytearray, nonce: str, body: int
) -> tuple[dict[str, Any], list[np.ndarray[Any, Any]]]:
    """The header and its arrays, not yet filled, whose bytes are exactly `body`."""
    with _suspicious("its header is not as agreed"):
        header = json.loads(data.decode("ascii"))
        _demand(type(header) is dict, "its header is no object")
        _demand(header["id"] == nonce, "it answers no question")
        specs = [(dtype, tuple(shape)) for dtype, shape in header["arrays"]]
        for dtype, shape in specs:
            _demand(dtype in DTYPES, "an array has an unknown type")
            _demand(all(type(n) is int and n >= 0 for n in shape), "an array has an odd shape")
        sizes = [math.prod(shape) * np.dtype(dtype).itemsize for dtype, shape in specs]
        _demand(sum(sizes) == body, "its arrays do not fill it")
        return header, [np.empty(shape, dtype) for dtype, shape in specs]


def _parse_reply(
    header: dict[str, Any], arrays: list[np.ndarray[Any, Any]], count: int
) -> tuple[list[Any], tuple[int, tuple[str, ...], str, str] | None]:
    """The fetched values, and the error: index among `count`, types, message, traceback."""
    with _suspicious("its values are not as agreed"):
        error = header["error"]
        if error is None:
            return [_decode(value, arrays, 0) for value in header["values"]], None
        index, types = error["index"], tuple(plain(name) for name in error["types"])
        _demand(type(index) is int and 0 <= index < count, "it names no instruction")
        _demand(bool(types), "its exception has no type")
        return [], (index, types, plain(error["message"]), _traceback(error))


def _traceback(error: dict[str, Any]) -> str:
    lines = [
        plain(f"{file}:{line:d} in {name}\n    {source}")
        for file, line, name, source in error["frames"]
    ]
    if error["skipped"]:
        lines.insert(len(lines) // 4, f"[... {error['skipped']:d} more ...]")
    return "\n".join(lines)


def _decode(value: Any, arrays: list[np.ndarray[Any, Any]], depth: int) -> Any:
    """The local value that an encoded value of a reply stands for."""
    _demand(depth <= _MAX_DEPTH, "a value is nested too deeply")
    if isinstance(value, str):
        _demand(len(value) <= _MAX_TEXT, "a string is too long")
        return value.encode("utf-8", "replace").decode("utf-8")
    if value is None or isinstance(value, (bool, int, float)):
        return value
    ((kind, content),) = value.items()
    if kind in ("a", "g", "b"):
        return _decode_array(kind, arrays[content])
    if kind == "d":
        pairs = [(_decode(k, arrays, depth + 1), _decode(v, arrays, depth + 1)) for k, v in content]
        return dict(pairs)
    if kind == "o":
        return Opaque(*(plain(word) for word in content))
    if kind == "e":
        return ...
    _demand(kind in ("l", "t"), "a value is of an unknown kind")
    items = [_decode(item, arrays, depth + 1) for item in content]
    return items if kind == "l" else tuple(items)


def _decode_array(kind: str, array: np.ndarray[Any, Any]) -> Any:
    if kind == "a":
        return array
    if kind == "b":
        return array.tobytes()
    _demand(array.shape == (), "a scalar has a shape")
    return array[()]
