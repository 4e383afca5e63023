"""Runs a student's code in a child process: carries out instructions from a pipe, and answers.

Stands alone, on the standard library and numpy, and knows nothing of what it runs. Started as

    python -I -B -u worker.py REQUESTS REPLIES PROGRESS CONFIG

with three inherited file descriptors and a JSON object {"sys_path": [...], "root": "..."}.

A frame, in either direction, is the length of a header (4 bytes) and of a body (8 bytes), both
little-endian; the header, JSON; the body, the raw bytes of the arrays that the header's "arrays"
lists as [dtype, shape], one after the other, in C order.

A request is {"id": nonce, "do": [[action, target, [value, ...]], ...]}: each action's result is
kept as number `target`. The reply repeats the id and has the "values" of the fetches and an
"error", null or what stopped the batch. A first frame with the id "ready" goes out before any
request is read.

A value is null, a bool, a number, a string, or an object with one key: l, t, d: list, tuple, dict
(as a list of pairs); s: slice; e: Ellipsis; a, g, b: the array with that number, as an array,
a numpy scalar, or bytes; r: the result with that number (requests only); o: anything else, as
[type, repr] (replies only).
"""

from __future__ import annotations

import builtins
import ctypes
import faulthandler
import functools
import json
import linecache
import operator
import os
import struct
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

# The functions below find these names here, whatever the student's code does to the originals.
__builtins__ = dict(vars(builtins))  # type: ignore[assignment]
_readv, _write, _pwrite, _getpid, _exit = os.readv, os.write, os.pwrite, os.getpid, os._exit
# These two methods, unlike those on top of them, look nothing up in builtins.
_encode_json = json.JSONEncoder(separators=(",", ":")).iterencode
_decode_json = json.JSONDecoder().raw_decode
_ndarray, _generic, _empty, _as_array = np.ndarray, np.generic, np.empty, np.asarray
_contiguous, _uint8, _frombuffer = np.ascontiguousarray, np.uint8, np.frombuffer
_nan, _iinfo = np.nan, np.iinfo
_realpath, _relpath, _sep = os.path.realpath, os.path.relpath, os.sep
_getline = linecache.getline
_fflush = ctypes.CDLL(None).fflush

PREFIX = struct.Struct("<IQ")
DTYPES = frozenset(
    {
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64"),
    }
)
BUILTINS: dict[str, Any] = {
    f.__name__: f for f in (len, list, tuple, dict, id, type, isinstance, sorted, getattr)
}
MAX_DEPTH = 16  # of containers in a fetched value
MAX_TEXT = 1 << 20  # characters of a fetched string
MAX_BITS = 4096  # of a fetched int
MAX_MESSAGE = 4000  # characters of an exception's message
MAX_NAME = 200  # characters of a name, a path, a line of source, the start of a repr
MAX_TYPES = 64  # of an exception: its class and the bases
FRAMES = (4, 12)  # of a traceback, kept at its start and at its end

Table = dict[int, Any]
Arrays = list[Any]


def call(function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Calls a function."""
    return function(*args, **kwargs)


ACTIONS: dict[str, Callable[..., Any]] = {
    "import": import_module,
    "builtin": BUILTINS.__getitem__,
    "value": lambda value: value,
    "get": getattr,
    "set": setattr,
    "item": operator.getitem,
    "setitem": operator.setitem,
    "call": call,
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": operator.truediv,
    "matmul": operator.matmul,
    "neg": operator.neg,
}


def read_into(fd: int, view: memoryview) -> None:
    """Fills a buffer from a descriptor. Ends the process if the parent has gone."""
    while view:
        count = _readv(fd, [view])
        if not count:
            _exit(0)  # the parent has gone
        view = view[count:]


def write_all(fd: int, view: memoryview) -> None:
    """Writes a whole buffer to a descriptor."""
    while view:
        view = view[_write(fd, view) :]


def raw(array: Any) -> memoryview:
    """The bytes of a contiguous array."""
    return memoryview(array.reshape(-1).view(_uint8)) if array.size else memoryview(b"")


def receive(fd: int) -> tuple[Any, Arrays]:
    """Reads one request: its header and its arrays."""
    prefix = bytearray(PREFIX.size)
    read_into(fd, memoryview(prefix))
    header = bytearray(PREFIX.unpack(prefix)[0])
    read_into(fd, memoryview(header))
    request = _decode_json(header.decode())[0]
    arrays = [_empty(shape, dtype) for dtype, shape in request["arrays"]]
    for array in arrays:
        read_into(fd, raw(array))
    return request, arrays


def send(fd: int, reply: dict[str, Any], arrays: Arrays) -> None:
    """Writes one reply: its header, then the bytes of its arrays."""
    reply["arrays"] = [[a.dtype.name, list(a.shape)] for a in arrays]
    header = "".join(_encode_json(reply, True)).encode()
    body = sum(a.nbytes for a in arrays)
    write_all(fd, memoryview(PREFIX.pack(len(header), body) + header))
    for array in arrays:
        write_all(fd, raw(array))


def decode(value: Any, arrays: Arrays, table: Table) -> Any:
    """The object that an encoded value of a request stands for."""
    if type(value) is not dict:
        return value
    ((kind, content),) = value.items()
    if kind in "agb":
        array = arrays[content]
        return array if kind == "a" else array[()] if kind == "g" else array.tobytes()
    if kind == "r":
        return table[content]
    if kind == "e":
        return ...
    if kind == "d":
        return {decode(k, arrays, table): decode(v, arrays, table) for k, v in content}
    items = [decode(item, arrays, table) for item in content]
    return items if kind == "l" else tuple(items) if kind == "t" else slice(*items)


def encode(value: Any, arrays: Arrays, depth: int = 0) -> Any:
    """A fetched value as a reply carries it. Adds its arrays to `arrays`."""
    if value is None or value is True or value is False:
        return value
    if isinstance(value, (_ndarray, _generic)) and value.dtype.name in DTYPES:
        return {"a" if isinstance(value, _ndarray) else "g": ship(_as_array(value), arrays)}
    if isinstance(value, bytes):
        return {"b": ship(_frombuffer(value, _uint8), arrays)}
    if isinstance(value, (int, float, str)):
        return encode_plain(value)
    if isinstance(value, (list, tuple)) and depth < MAX_DEPTH:
        items = [encode(item, arrays, depth + 1) for item in value]
        return {"l" if isinstance(value, list) else "t": items}
    if isinstance(value, dict) and depth < MAX_DEPTH:
        pairs = value.items()
        return {
            "d": [[encode(k, arrays, depth + 1), encode(v, arrays, depth + 1)] for k, v in pairs]
        }
    return {"e": 0} if value is ... else opaque(value)


def encode_plain(value: Any) -> Any:
    """A string or number as it is; as `opaque` if it is too long."""
    if isinstance(value, str):
        return str(value) if len(value) <= MAX_TEXT else opaque(value)
    if isinstance(value, float):
        return float(value)
    return int(value) if value.bit_length() <= MAX_BITS else opaque(value)


def ship(array: Any, arrays: Arrays) -> int:
    """Adds an array, in native byte order, to those of the reply; returns its number."""
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    arrays.append(_contiguous(native).reshape(array.shape))
    return len(arrays) - 1


def opaque(value: Any) -> Any:
    """The type's name and the start of the repr of a value that is not sent."""
    return {"o": [type(value).__name__[:MAX_NAME], shown(repr, value)[:MAX_NAME]]}


def shown(how: Callable[[Any], str], value: Any) -> str:
    """`how(value)`, str or repr, for objects whose own methods may fail."""
    try:
        return str(how(value))
    except BaseException as error:
        return f"<no text: {type(error).__name__}>"


def student_path(file: str, root: str, code: str) -> str:
    """The path of a file relative to `root`; "" unless the file lies in the folder `code`."""
    path = _realpath(file)
    is_code = path.startswith(code + _sep) and not file.startswith("<")
    return _relpath(path, root) if is_code else ""


def student_frames(error: BaseException, root: str, code: str) -> list[list[Any]]:
    """[file below root, line, function, source text] of the error's frames in files of the folder
    `code`, which holds the student's."""
    frames: list[list[Any]] = []
    step = error.__traceback__
    while step is not None:
        block = step.tb_frame.f_code
        frames += frame(block.co_filename, step.tb_lineno, block.co_name, root, code)
        step = step.tb_next
    if isinstance(error, SyntaxError) and error.filename:
        frames += frame(error.filename, error.lineno or 0, "<module>", root, code)
    return frames


def frame(file: str, line: int, name: str, root: str, code: str) -> list[list[Any]]:
    """One frame of student_frames, in a list; an empty list if it is not the student's."""
    path = student_path(file, root, code)
    if not path:
        return []
    source = _getline(_realpath(file), line).strip()
    return [[path[:MAX_NAME], line, name[:MAX_NAME], source[:MAX_NAME]]]


def describe(error: BaseException, index: int, root: str, code: str) -> dict[str, Any]:
    """Describes, for the parent, an exception that stopped instruction `index`."""
    types = [t.__name__[:MAX_NAME] for t in type(error).__mro__[:MAX_TYPES]]
    message = shown(lambda e: e.msg if isinstance(e, SyntaxError) else str(e), error)
    try:
        frames = student_frames(error, root, code)
    except BaseException:
        frames = []
    first, last = FRAMES
    skipped = max(0, len(frames) - first - last)
    del frames[first : first + skipped]
    return {
        "index": index,
        "types": types,
        "message": message[:MAX_MESSAGE],
        "frames": frames,
        "skipped": skipped,
    }


class Worker:
    """The table of results, and the pipes to the parent. `root` is the tree's folder, `code` the
    one in it whose frames a traceback shows."""

    def __init__(self, requests: int, replies: int, progress: int, root: str) -> None:
        self.requests, self.replies, self.progress = requests, replies, progress
        self.root = self.code = _realpath(root)
        self.table: Table = {}
        self.pid = _getpid()

    def serve(self) -> None:
        """Answers requests until the parent closes the pipe."""
        send(self.replies, {"id": "ready"}, [])
        while True:
            self.answer()

    def answer(self) -> None:
        """Carries out one request, and replies."""
        request, arrays = receive(self.requests)
        reply, out = self.carry_out(request["do"], arrays)
        if _getpid() != self.pid:
            _exit(0)  # a copy that the student's code forked
        _fflush(None)
        send(self.replies, {"id": request["id"], **reply}, out)

    def begin(self, index: int) -> None:
        """Tells the parent which instruction runs now."""
        _pwrite(self.progress, PREFIX.pack(index, 1), 0)

    def carry_out(self, batch: list[Any], arrays: Arrays) -> tuple[dict[str, Any], Arrays]:
        """Carries out a batch up to its first error. Its "drop" instructions run in any case."""
        values: list[Any] = []
        out: Arrays = []
        error = None
        for index, (action, target, words) in enumerate(batch):
            self.begin(index)
            if action == "drop":
                self.table.pop(target, None)
            elif error is None:
                try:
                    args = [decode(word, arrays, self.table) for word in words]
                    if action == "fetch":
                        values.append(encode(args.pop(), out))
                    else:
                        self.table[target] = ACTIONS[action](*args)
                except BaseException as raised:
                    error = describe(raised, index, self.root, self.code)
                args = []
        if error is not None:
            return {"values": [], "error": error}, []
        return {"values": values, "error": None}, out


def _leave_site_packages(paths: list[str]) -> None:
    """Limits imports to `paths`, the standard library and numpy. The environment beside numpy holds
    the grader, and the solution lies beside the grader."""
    library = os.path.dirname(os.path.realpath(os.__file__))
    own = [p for p in sys.path if os.path.realpath(p).startswith(library) and "-packages" not in p]
    sys.path[:] = paths + own
    known = ("BuiltinImporter", "FrozenImporter", "PathFinder")
    sys.meta_path[:] = [f for f in sys.meta_path if getattr(f, "__name__", "") in known]


def _filled(make: Callable[..., Any]) -> Callable[..., Any]:
    """`make`, which returns new arrays, with NaN in them, or a large integer."""

    @functools.wraps(make)
    def made(*args: Any, **options: Any) -> Any:
        array = make(*args, **options)
        kind = array.dtype.kind if isinstance(array, _ndarray) else ""
        if kind in "fc" and kind:
            array.fill(_nan)
        elif kind in "iu" and kind:
            array.fill(_iinfo(array.dtype).max // 3)
        return array

    return made


def fill_new_arrays() -> None:
    """Makes numpy fill new arrays with NaN. As numpy leaves it, new memory often holds the right
    values of the last run."""
    for name in ("empty", "empty_like"):
        setattr(np, name, _filled(getattr(np, name)))


def main() -> None:
    """Reads the command line, prepares the process, and serves the parent."""
    requests, replies, progress = (int(word) for word in sys.argv[1:4])
    config = json.loads(sys.argv[4])
    for fd in (requests, replies, progress):
        os.set_inheritable(fd, False)
    _leave_site_packages(config["sys_path"])
    sys.argv[1:] = []
    faulthandler.enable()
    fill_new_arrays()
    Worker(requests, replies, progress, config["root"]).serve()


if __name__ == "__main__":
    main()
