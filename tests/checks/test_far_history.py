"""What the far device itself does: calls that it refuses, and the history of what it computed."""

import socket
import struct

import numpy as np
import pytest

from grader.checks.far_gpu import far_session
from grader.checks.far_gpu.far_device import FarDevice


class RefusedCall(Exception):
    pass


class Wire:
    """Sends calls to a FarDevice of this process."""

    def __init__(self):
        self.device = FarDevice()
        self.socket, theirs = socket.socketpair()
        self.device.serve(theirs.detach())

    def call(self, what, rest=b""):
        self.socket.sendall(struct.pack("<cI", what, len(rest)) + rest)
        code, size = struct.unpack("<iI", self.socket.recv(8, socket.MSG_WAITALL))
        told = self.socket.recv(size, socket.MSG_WAITALL) if size else b""
        if code:
            raise RefusedCall(told.decode())
        return told

    def empty(self, floats):
        return struct.unpack("<Q", self.call(b"A", struct.pack("<iQ", 0, 4 * floats)))[0]

    def upload(self, address, values):
        self.call(b"U", struct.pack("<Q", address) + np.asarray(values, np.float32).tobytes())

    def launch(self, name, *arguments):
        packed = b""
        for one in arguments:
            if isinstance(one, tuple):
                address, shape = one
                packed += b"a" + struct.pack("<iQi", 2, address, len(shape))
                packed += struct.pack(f"<{len(shape)}q", *shape)
            else:
                packed += b"f" + struct.pack("<f", one)
        self.call(b"L", name.encode() + b"\0" + packed)

    def copy(self, source, target, floats):
        self.call(b"C", struct.pack("<QQQ", source, target, 4 * floats))

    def trace(self, address, floats):
        data = self.call(b"D", struct.pack("<QQ", address, 4 * floats))
        return self.device.trace([far_session._hash(np.frombuffer(data, np.float32))])[0][-1]


def traced(**facts):
    """What is told of a history."""
    none = dict.fromkeys(("steps", "launches", "constants", "places", "pieces"), 0)
    return {**none, "uploads": [], "unwritten": False, **facts}


def test_a_result_is_traced_to_what_was_uploaded():
    wire, fed = Wire(), np.arange(4)
    a, b = wire.empty(4), wire.empty(4)
    wire.upload(a, fed)
    wire.launch("DLGpuMatrixMultiplyByConst", (a, (4,)), 2.0, (b, (4,)))
    wire.launch("DLGpuRelu", (b, (4,)), (b, (4,)))
    wire.call(b"C", struct.pack("<QQQ", b, a, 16))
    made = traced(steps=3, launches=2, places=1, uploads=[far_session._hash(fed)], constants=1)
    assert wire.trace(a, 4) == made
    assert wire.trace(a + 4, 2) == made  # a part of it


def test_what_is_read_and_goes_back_is_still_what_it_was():
    wire, a = Wire(), None
    a, b = wire.empty(4), wire.empty(4)
    wire.upload(a, np.arange(4))
    wire.launch("DLGpuMatrixElementwiseAddByConst", (a, (4,)), 1.0, (b, (4,)))
    assert wire.trace(b, 4)["launches"] == 1
    wire.upload(a, np.arange(4) + 1)
    assert wire.trace(a, 4)["launches"] == 1


def test_equal_numbers_may_be_made_in_several_ways():
    wire, x = Wire(), np.arange(1, 5)
    a, b = wire.empty(4), wire.empty(4)
    wire.upload(a, x)
    wire.launch("DLGpuRelu", (a, (4,)), (b, (4,)))
    for address in (b, a, b):
        wire.trace(address, 4)
    assert {way["launches"] for way in wire.device.trace([far_session._hash(x)])[0]} == {0, 1}


def test_pieces_are_traced_one_by_one():
    wire = Wire()
    a, b = wire.empty(4), wire.empty(4)
    for place in range(4):
        wire.launch("DLGpuArraySet", (a + 4 * place, (1,)), float(place))
    wire.launch("DLGpuRelu", (a, (4,)), (b, (4,)))
    made = traced(steps=6, launches=5, places=5, constants=4, pieces=4)
    assert wire.trace(b, 4) == made


def test_copies_of_parts_are_pieces_unless_they_lie_as_they_were_made():
    wire = Wire()
    a, b = wire.empty(8), wire.empty(8)
    wire.upload(a, np.arange(8))
    for place in range(8):
        wire.copy(a + 4 * place, b + 4 * place, 1)
    assert wire.trace(b, 8)["pieces"] == 0
    wire.copy(a, b + 4, 1)
    assert wire.trace(b, 8)["pieces"] == 3
    assert wire.trace(b + 8, 6)["pieces"] == 0


def test_what_nobody_wrote_is_copied_beside_the_values_and_not_with_them():
    wire = Wire()
    a, b = wire.empty(8), wire.empty(8)
    wire.upload(a, np.arange(4))
    wire.copy(a, b, 8)
    assert not wire.trace(b, 4)["unwritten"]
    assert wire.trace(b, 5)["unwritten"]


def test_overlapping_copies_take_their_history_along():
    wire = Wire()
    a = wire.empty(6)
    wire.upload(a, np.arange(4))
    wire.copy(a, a + 8, 4)
    wire.upload(a, [5, 6])
    assert wire.trace(a + 8, 4) == traced(steps=1, uploads=[far_session._hash(np.arange(4))])


def test_the_ways_and_the_steps_of_a_result_that_are_told_are_bounded():
    wire = Wire()
    a = wire.empty(4)
    for _ in range(2000):
        wire.launch("DLGpuRelu", (a, (4,)), (a, (4,)))
        wire.launch("DLGpuMatrixMultiplyByConst", (a, (4,)), 0.0, (a, (4,)))
        wire.call(b"D", struct.pack("<QQ", a, 16))
    (ways,) = wire.device.trace([far_session._hash(np.zeros(4))])
    assert 0 < len(ways) < 100 and all(1000 < way["steps"] < 1100 for way in ways)


def test_an_array_of_too_many_pieces_ends_the_connection():
    wire = Wire()
    a = wire.empty(10_000)
    with pytest.raises((struct.error, OSError)):
        for place in range(10_000):
            wire.launch("DLGpuArraySet", (a + 4 * place, (1,)), float(place))
    assert "more than 4,096 pieces" in wire.device.state()["trouble"]


def test_much_memory_may_be_allocated_of_which_little_is_used():
    wire = Wire()
    a = wire.empty(1 << 30)
    wire.upload(a, np.arange(4))
    assert wire.trace(a, 4)["uploads"]
    with pytest.raises(RefusedCall, match="at once"):
        wire.call(b"D", struct.pack("<QQ", a, 4 << 30))


def test_memory_that_nobody_wrote_is_known_also_where_another_array_lay():
    wire = Wire()
    a = wire.empty(4)
    wire.upload(a, np.arange(4))
    wire.call(b"F", struct.pack("<Q", a))
    b = wire.empty(4)
    wire.upload(b, [1, 2])
    wire.launch("DLGpuRelu", (b, (4,)), (b, (4,)))
    assert wire.trace(b, 4)["unwritten"]


@pytest.mark.parametrize(
    ("what", "rest", "words"),
    [
        (b"A", struct.pack("<iQ", 0, 1 << 40), "out of memory"),
        (b"A", struct.pack("<iQ", 99, 4), "invalid device"),
        (b"F", struct.pack("<Q", 5), "invalid argument"),
        (b"D", struct.pack("<QQ", 0, 4), "no memory of the GPU"),
        (b"D", struct.pack("<QQ", 1 << 45, 32), "no memory of the GPU"),
        (b"D", struct.pack("<QQ", (1 << 45) + 2, 4), "no memory of the GPU"),
    ],
)
def test_what_a_gpu_refuses_is_refused(what, rest, words):
    wire = Wire()
    wire.empty(4)
    with pytest.raises(RefusedCall, match=words):
        wire.call(what, rest)
    assert wire.empty(4)  # and goes on


def test_shapes_that_no_kernel_takes_are_refused():
    wire = Wire()
    a = wire.empty(1 << 20)
    for name, *shapes in [
        ("DLGpuRelu", (4,), (5,)),
        ("DLGpuRelu", (4,)),
        ("DLGpuSoftmax", (4,), (4,)),
        ("DLGpuBroadcastTo", (4,), (4, 3)),
        ("DLGpuMatrixElementwiseAdd", (4,), (4,), (2, 2)),
        ("DLGpuMatrixMultiply", (1 << 20, 1), (1, 1 << 20), (4, 4)),
        ("DLGpuArraySet", (1 << 62, 1 << 62)),
        ("DLGpuRelu", (1 << 62, 1 << 62, 0), (1 << 62, 1 << 62, 0)),
        ("DLGpuSoftmax", (3, 0), (3, 0)),
        ("DLGpuReduceSumAxisZero", (0, 1 << 40), (1 << 40,)),
    ]:
        with pytest.raises(RefusedCall):
            wire.launch(name, *[(a, shape) for shape in shapes])
    said = {"allocations": 1, "trouble": "", "crash": "", "on_cpu": False}
    assert wire.device.state() == said
