"""A GPU's memory and kernels, in a process where no code of a student's runs.

A child that links far_device.cc sends its calls here, over a socket. Memory is numpy's, addresses
are numbers that nobody can read from, and the twelve kernels are numpy's functions: whether those
of the student's are right, other checks ask. What is kept here is where every float comes from, and
the grader asks for it over a pipe of its own, which the child does not have.

Stands alone, on the standard library and numpy; the worker imports it. A request is one byte that
says what, the length of the rest (4 bytes), and the rest; an answer is 4 bytes, 0 or -1, and the
length of the rest: what was asked for, or words. All little-endian.

    A device, bytes  allocates, and answers an address      F address  frees
    U address, data  uploads                                D address, bytes  answers the data
    C from, to, bytes  copies on the device                 L name, arguments  launches a kernel
"""

from __future__ import annotations

import bisect
import hashlib
import math
import os
import struct
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]

_REQUEST, _ANSWER, _LAUNCHED = struct.Struct("<cI"), struct.Struct("<iI"), struct.Struct("<iQi")
_SMALL = 1 << 20  # bytes of a request that no memory waits for
_MEMORY = 8 << 30  # bytes in all, as on the emulated GPU; what nobody writes takes none here
_MOST_SENT = 1 << 30  # bytes of a copy to or from the host
_FIRST, _ALIGNED = 1 << 45, 256  # no process has memory of its own there
_MOST_MADE = 1_000_000  # results, and their inputs
_MOST_PIECES = 4096  # of one block
_MOST_WAYS = 32  # in which the same numbers were made: the latest are kept
_MOST_STEPS = 1000  # of a history
_MOST_AXES = 32
_GPUS = 8
#: How a kernel is refused an array that no GPU reaches.
ON_CPU = "a kernel was given an array on the CPU: CUDA error 700"


class Refused(Exception):
    """A call that the device refuses. The child gets the message as an error of its call."""


class Broken(Exception):
    """The child sent something that is no call."""


class Made(NamedTuple):
    """How a piece of memory was made.

    Attributes:
        how: the kernel, or "upload", "constant", "unwritten", "pieces" of several, or "either" of
            several.
        numbers: the launch's numbers, or the upload's hash.
        of: numbers of the Mades that went in.
        pieces: how many pieces went in.
        address: where a kernel wrote it.
    """

    how: str
    numbers: tuple[str, ...] = ()
    of: tuple[int, ...] = ()
    pieces: int = 0
    address: int = 0


class Piece(NamedTuple):
    """Floats `start` to `stop` of a block: what a Made has made, from its float `at` on."""

    start: int
    stop: int
    number: int
    at: int

    def within(self, start: int, stop: int) -> Piece:
        """Its part in these bounds; empty if start is not below stop."""
        first = max(self.start, start)
        return Piece(first, min(self.stop, stop), self.number, self.at + first - self.start)


class Allocation(NamedTuple):
    """Allocated memory: its address, its floats, and the pieces that it consists of, in order."""

    address: int
    data: Array
    pieces: list[Piece]

    def span(self, start: int, stop: int) -> tuple[int, int]:
        """The first of the pieces that begin before `stop` and end behind `start`, and the one
        behind the last."""
        first = bisect.bisect_left(self.pieces, Piece(start + 1, 0, 0, 0)) - 1
        return max(first, 0), bisect.bisect_left(self.pieces, Piece(stop, 0, 0, 0))


class FloatRange(NamedTuple):
    """A range of floats in an allocation."""

    block: Allocation
    start: int
    stop: int

    @property
    def address(self) -> int:
        """The address of its first float."""
        return self.block.address + 4 * self.start

    @property
    def pieces(self) -> list[Piece]:
        """The pieces of the allocation that lie in it, cut at its ends."""
        first, last = self.block.span(self.start, self.stop)
        parts = [p.within(self.start, self.stop) for p in self.block.pieces[first:last]]
        return [part for part in parts if part.start < part.stop]

    @property
    def data(self) -> Array:
        """Its floats, as a view."""
        return self.block.data[self.start : self.stop]


def _softmax(values: Array) -> Any:
    powers = np.exp(values - values.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def _cross_entropy(values: Array, labels: Array) -> Any:
    less = values - values.max(axis=1, keepdims=True)
    logs = less - np.log(np.exp(less).sum(axis=1, keepdims=True))
    return -(labels * logs).sum(axis=1).mean()


def _multiply(a: Array, trans_a: bool, b: Array, trans_b: bool) -> Array:
    return (a.T if trans_a else a) @ (b.T if trans_b else b)


def _same(*shapes: tuple[int, ...]) -> bool:
    return len(set(shapes)) == 1


def _fit(
    a: tuple[int, ...], trans_a: bool, b: tuple[int, ...], trans_b: bool, out: tuple[int, ...]
) -> bool:
    if not len(a) == len(b) == 2:
        return False
    (rows, inner), (same, columns) = a[::-1] if trans_a else a, b[::-1] if trans_b else b
    return inner == same and out == (rows, columns)


#: Kernel -> (what it computes, its output left out; and whether it takes arguments with these
#: shapes for arrays, and with these flags).
KERNELS: dict[str, tuple[Callable[..., Any], Callable[..., bool]]] = {
    "DLGpuArraySet": (lambda value: value, lambda out: True),
    "DLGpuBroadcastTo": (lambda a: a, lambda a, out: out[1:] == a and len(out) > len(a)),
    "DLGpuReduceSumAxisZero": (
        lambda a: a.sum(axis=0),
        lambda a, out: bool(a) and out == (a[1:] or (1,)),
    ),
    "DLGpuMatrixElementwiseAdd": (np.add, _same),
    "DLGpuMatrixElementwiseAddByConst": (lambda a, value: a + value, _same),
    "DLGpuMatrixElementwiseMultiply": (np.multiply, _same),
    "DLGpuMatrixMultiplyByConst": (lambda a, value: a * value, _same),
    "DLGpuMatrixMultiply": (_multiply, _fit),
    "DLGpuRelu": (lambda a: np.maximum(a, np.float32(0)), _same),
    "DLGpuReluGradient": (lambda a, grad: np.where(a > 0, grad, np.float32(0)), _same),
    "DLGpuSoftmax": (_softmax, lambda a, out: len(a) == 2 and a == out),
    "DLGpuSoftmaxCrossEntropy": (
        _cross_entropy,
        lambda a, b, out: len(a) == 2 and a == b and np.prod(out) == 1,
    ),
}


class FarDevice:
    """The memory, how it came about, and the thread that serves the child."""

    def __init__(self) -> None:
        self.allocations, self.trouble, self.crash, self.on_cpu = 0, "", "", False
        self._blocks: dict[int, Allocation] = {}
        self._starts: list[int] = []
        self._next, self._bytes, self._weight = _FIRST, 0, 0
        self._made = [Made("unwritten")]
        self._joined: dict[tuple[int, ...], int] = {}  # numbers of pieces -> number of the whole
        # Hash of what was downloaded -> how it was made: the same numbers may be made in many ways.
        self._read: dict[str, dict[int, None]] = {}
        self._calls = {
            b"A": self._allocate, b"F": self._free, b"U": self._upload, b"D": self._download,
            b"C": self._copy, b"L": self._launch,
        }  # fmt: skip

    def serve(self, fd: int) -> None:
        """Carries out what comes over a socket, in a thread of its own."""
        threading.Thread(target=self._serve, args=(fd,), daemon=True).start()

    def state(self) -> dict[str, Any]:
        """Arrays allocated so far; what is wrong with what came, or ""; and with this itself; and
        whether a kernel was given an array of the CPU."""
        return {n: getattr(self, n) for n in ("allocations", "trouble", "crash", "on_cpu")}

    def trace(self, hashes: Iterable[str]) -> list[list[dict[str, Any]]]:
        """How each download with one of these hashes was made.

        Its `steps` are counted up to a little over a thousand; `launches` and `constants` (steps
        with a number from the host) are among them. `places` counts where launches wrote, `pieces`
        the parts of arrays that went in; `uploads` has the hashes of what went in, and
        `unwritten` says whether memory that nobody wrote did."""
        return [[self._trace(n) for n in self._read.get(one, ())] for one in hashes]

    def _trace(self, number: int) -> dict[str, Any]:
        seen, pending = {number}, [number]
        while pending and len(seen) <= _MOST_STEPS:
            new = set(self._made[pending.pop()].of) - seen
            seen |= new
            pending += new
        made = [self._made[each] for each in seen]
        launches = [each for each in made if each.how in KERNELS]
        return {
            "steps": len(seen),
            "launches": len(launches),
            "constants": sum(each.how != "upload" and bool(each.numbers) for each in made),
            "places": len({each.address for each in launches}),
            "pieces": sum(each.pieces for each in made),
            "uploads": sorted(each.numbers[0] for each in made if each.how == "upload"),
            "unwritten": 0 in seen,
        }

    def _serve(self, fd: int) -> None:
        try:
            while True:
                what, size = _REQUEST.unpack(_receive(fd, _REQUEST.size))
                if what not in self._calls or size > _SMALL + (what == b"U") * _MOST_SENT:
                    raise Broken(f"no call is {what!r} with {size} bytes")
                _answer(fd, self._calls[what], _receive(fd, size))
        except (Broken, OSError) as error:
            self.trouble = str(error)
        except BaseException:
            self.crash = traceback.format_exc()
        finally:
            os.close(fd)

    def _note(self, made: Made) -> int:
        self._weight += 1 + len(made.of)
        if self._weight > _MOST_MADE:
            raise Broken(f"more than {_MOST_MADE:,} results lie on the GPU, or went into others")
        self._made.append(made)
        return len(self._made) - 1

    def _find(self, address: int, size: int) -> FloatRange:
        """Raises Refused unless `size` floats from an address on are allocated."""
        index = bisect.bisect_right(self._starts, address) - 1
        if index >= 0:
            block = self._blocks[self._starts[index]]
            start, odd = divmod(address - self._starts[index], 4)
            if not odd and start + size <= len(block.data):
                return FloatRange(block, start, start + size)
        raise Refused(f"{size} floats at {address:#x} are no memory of the GPU: CUDA error 700")

    def _origin(self, place: FloatRange) -> int:
        """How the floats of a place came about."""
        numbers = tuple(piece.number for piece in place.pieces)
        if len(numbers) == 1:
            return numbers[0]
        if numbers not in self._joined:
            of = tuple(dict.fromkeys(numbers))
            self._joined[numbers] = self._note(Made("pieces", of=of, pieces=len(numbers)))
        return self._joined[numbers]

    def _write(self, place: FloatRange, pieces: list[Piece]) -> None:
        """The floats of a place consist of these pieces from now on.

        Raises:
            Broken: the block has too many.
        """
        first, last = place.block.span(place.start, place.stop)
        near = slice(max(first - 1, 0), last + 1)  # with what may be one with them
        old = place.block.pieces[near]
        kept = [piece.within(piece.start, place.start) for piece in old]
        kept += [piece.within(place.stop, piece.stop) for piece in old]
        joined: list[Piece] = []
        for piece in sorted(piece for piece in (*kept, *pieces) if piece.start < piece.stop):
            prior = joined[-1] if joined else None
            if prior and prior[2:] == (piece.number, piece.at - piece.start + prior.start):
                joined[-1] = prior._replace(stop=piece.stop)
            else:
                joined.append(piece)
        place.block.pieces[near] = joined
        if len(place.block.pieces) > _MOST_PIECES:
            raise Broken(f"an array was written in more than {_MOST_PIECES:,} pieces")

    def _make(self, place: FloatRange, made: Made) -> None:
        """The floats of a place are from now on what was made."""
        self._write(place, [Piece(place.start, place.stop, self._note(made), 0)])

    def _allocate(self, rest: bytearray) -> bytes:
        device, size = _unpack("<iQ", rest)
        if not 0 <= device < _GPUS or size % 4:
            raise Refused("cudaSetDevice: invalid device ordinal (CUDA error 101)")
        if size > _MEMORY - self._bytes:
            raise Refused(f"cudaMalloc of {size} bytes: out of memory (CUDA error 2)")
        start, floats = self._next, size // 4
        block = Allocation(start, np.empty(floats, np.float32), [Piece(0, floats, 0, 0)])
        self._next += max(size, 1) + -max(size, 1) % _ALIGNED
        self._blocks[start] = block
        self._starts.append(start)
        self._bytes += size
        self.allocations += 1
        return struct.pack("<Q", start)

    def _free(self, rest: bytearray) -> bytes:
        (address,) = _unpack("<Q", rest)
        block = self._blocks.pop(address, None)
        if block is None:
            raise Refused("cudaFree: invalid argument (CUDA error 1)")
        del self._starts[bisect.bisect_left(self._starts, address)]
        self._bytes -= block.data.nbytes
        return b""

    def _upload(self, rest: bytearray) -> bytes:
        if len(rest) < 8 or len(rest) % 4:
            raise Broken("an upload of no floats")
        values = np.frombuffer(rest, np.float32, offset=8)
        place = self._find(int.from_bytes(rest[:8], "little"), len(values))
        place.data[:] = values
        if len(values) == 0:
            return b""
        digest, bits = hashlib.sha256(values.tobytes()).hexdigest(), values.view(np.uint32)
        if digest in self._read:  # what was read goes back
            made = Made("either", of=tuple(self._read[digest]))
        elif (bits == bits[0]).all():
            made = Made("constant", (_name(values[0]),))
        else:
            made = Made("upload", (digest,))
        self._make(place, made)
        return b""

    def _download(self, rest: bytearray) -> bytes:
        address, size = _unpack("<QQ", rest)
        place = self._find(address, size // 4)
        if size > _MOST_SENT:
            raise Refused(f"more than {_MOST_SENT:,} bytes are copied to the host at once")
        data = place.data.tobytes()
        ways = self._read.setdefault(hashlib.sha256(data).hexdigest(), {})
        ways[self._origin(place)] = None
        if len(ways) > _MOST_WAYS:
            del ways[next(iter(ways))]
        return data

    def _copy(self, rest: bytearray) -> bytes:
        source, target, size = _unpack("<QQQ", rest)
        origin, into = self._find(source, size // 4), self._find(target, size // 4)
        moved = into.start - origin.start
        pieces = [Piece(p.start + moved, p.stop + moved, p.number, p.at) for p in origin.pieces]
        into.data[:] = origin.data.copy()
        self._write(into, pieces)
        return b""

    def _launch(self, rest: bytearray) -> bytes:
        word, _, packed = bytes(rest).partition(b"\0")
        name = word.decode("ascii", "replace")
        if name not in KERNELS:
            raise Broken(f"there is no kernel {name[:40]!r}")
        arguments = list(self._arguments(packed))
        arrays = [a for a in arguments if isinstance(a, tuple)]
        told = [a[1] if isinstance(a, tuple) else a for a in arguments]
        compute, takes = KERNELS[name]
        if not arrays:
            raise Broken("a kernel without arrays")
        place, shape = arrays[-1]  # the output
        inputs = [a for a in arguments if a is not arrays[-1]]
        try:
            values = [a[0].data.reshape(a[1]) if isinstance(a, tuple) else a for a in inputs]
            if not takes(*[a for a in told if not isinstance(a, np.float32)]):
                raise ValueError
            result = np.broadcast_to(np.asarray(compute(*values), np.float32), shape)
        except (TypeError, ValueError, MemoryError):
            shapes = ", ".join(str(shape) for _, shape in arrays)
            raise Refused(f"{name} does not take arrays of the shapes {shapes}") from None
        numbers = tuple(_name(a) for a in arguments if isinstance(a, np.float32))
        of = tuple(self._origin(place) for place, _ in arrays[:-1])
        place.data[:] = result.reshape(-1)
        self._make(place, Made(name, numbers, of, address=place.address))
        return b""

    def _arguments(self, packed: bytes) -> Iterator[Any]:
        """Arrays as (place, shape), numbers and flags."""
        while packed:
            kind, packed = packed[:1], packed[1:]
            if kind == b"a" and len(packed) >= _LAUNCHED.size:
                device, address, axes = _LAUNCHED.unpack_from(packed)
                if not 0 <= axes <= _MOST_AXES:
                    raise Refused(f"an array has {axes} axes")
                shape = _unpack(f"<{axes}q", packed[_LAUNCHED.size : _LAUNCHED.size + 8 * axes])
                packed = packed[_LAUNCHED.size + 8 * axes :]
                if device != 2:
                    self.on_cpu = True
                    raise Refused(ON_CPU)
                if min(shape, default=0) < 0:
                    raise Refused(f"no array has the shape {shape}")
                if math.prod(max(extent, 1) for extent in shape) > _MEMORY:  # empty ones too
                    raise Refused(f"no array has the shape {shape}")
                yield self._find(address, math.prod(shape)), shape
            elif kind == b"f":
                yield np.float32(_unpack("<f", packed[:4])[0])
                packed = packed[4:]
            elif kind == b"b" and packed:
                yield packed[0] != 0
                packed = packed[1:]
            else:
                raise Broken("an argument of a kernel is none")


def _name(value: Any) -> str:
    return float(value).hex()


def _unpack(form: str, data: bytes | bytearray) -> tuple[Any, ...]:
    if len(data) != struct.calcsize(form):
        raise Broken(f"{len(data)} bytes where {struct.calcsize(form)} belong")
    return struct.unpack(form, data)


def _receive(fd: int, size: int) -> bytearray:
    data = bytearray(size)
    view = memoryview(data)
    while view:
        count = os.readv(fd, [view])
        if not count:
            raise Broken("the connection was closed")
        view = view[count:]
    return data


def _answer(fd: int, call: Callable[[bytearray], bytes], rest: bytearray) -> None:
    code = 0
    try:
        told = call(rest)
    except Refused as refusal:
        code, told = -1, str(refusal).encode()
    except MemoryError:
        code, told = -1, b"out of memory (CUDA error 2)"
    view = memoryview(_ANSWER.pack(code, len(told)) + told)
    while view:
        view = view[os.write(fd, view) :]
