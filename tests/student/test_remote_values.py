"""What passes between a check and a student's process arrives as it was sent."""

import math

import numpy as np
import pytest

from grader.student import worker
from grader.student.remote import Opaque

SCALARS = [
    None,
    True,
    False,
    0,
    -7,
    2**100,
    1.5,
    -0.0,
    math.inf,
    "",
    "text",
    "\x00ü\n😀",
    b"",
    b"\xff\0",
]
CONTAINERS = [[], (), {}, [1, [2, (3, "x")]], {"a": 1, 2: [None], (1, 2): {"k": 2.5}}, ...]
ARRAYS = [
    np.zeros((), np.float32),
    np.zeros((0, 3), np.int64),
    np.arange(24.0).reshape(2, 3, 4)[:, ::2].transpose(2, 0, 1),
    np.asfortranarray(np.arange(6).reshape(2, 3)),
    np.arange(5, dtype=">f4"),
    np.array([math.nan, math.inf, -math.inf, -0.0]),
]


@pytest.mark.parametrize("value", SCALARS + CONTAINERS, ids=repr)
def test_a_plain_value_survives_the_round_trip(shared, value):
    got = shared.fetch(shared.put(value))
    assert type(got) is type(value)
    assert got == value
    assert repr(got) == repr(value)


def test_nan_survives_the_round_trip(shared):
    assert math.isnan(shared.fetch(shared.put(math.nan)))


@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: f"{a.dtype}{a.shape}")
def test_an_array_survives_in_c_order(shared, array):
    got = shared.fetch(shared.put(array))
    assert got.dtype == array.dtype.newbyteorder("=")
    assert got.shape == array.shape
    assert got.flags.c_contiguous and got.flags.writeable
    np.testing.assert_array_equal(got, array)


@pytest.mark.parametrize("dtype", sorted(worker.DTYPES))
def test_arrays_and_scalars_of_every_type_survive(shared, dtype):
    array = np.array([[0, 1], [1, 0]]).astype(dtype)
    matrix, scalar = shared.fetch_all([shared.put(array), shared.put(array[0, 1])])
    assert matrix.tobytes() == array.tobytes() and matrix.dtype == array.dtype
    assert type(scalar) is type(array[0, 1]) and scalar == array[0, 1]


def test_a_large_array_survives(shared):
    array = np.arange(500_000, dtype=np.float64)  # more than a pipe holds
    assert (shared.fetch(shared.put(array)) == array).all()


def test_an_array_is_copied_when_it_is_queued(shared):
    array = np.zeros(3)
    proxy = shared.put(array)
    array[:] = 1
    assert (shared.fetch(proxy) == 0).all()


def test_values_of_other_types_arrive_as_opaque(shared):
    got = shared.fetch(shared.builtin("type")(1))
    assert got == Opaque("type", "<class 'int'>")
    assert shared.fetch([shared.builtin("len")])[0].type_name == "builtin_function_or_method"


def test_what_is_too_deep_too_long_or_has_no_repr_arrives_as_opaque(student):
    code = """
deep = []
for _ in range(50): deep = [deep]
long, big = "x" * 2_000_000, 1 << 100_000
class Mute:
    def __repr__(self): raise SystemExit
mute = Mute()
import numpy
objects = numpy.array([mute])
"""
    with student(code) as remote:
        work = remote.import_("work")
        deep, long, big, mute, objects = remote.fetch_all(
            [work.deep, work.long, work.big, work.mute, work.objects]
        )
    assert isinstance(deep, list)
    assert long.type_name == "str"
    assert big.type_name == "int"
    assert mute == Opaque("Mute", "<no text: SystemExit>")
    assert objects.type_name == "ndarray"


def test_subclasses_arrive_as_their_plain_base(student):
    code = """
import collections, enum, numpy
Pair = collections.namedtuple("Pair", "a b")
values = [Pair(1, 2), collections.OrderedDict(a=1), enum.IntEnum("E", "X").X]
values.append(numpy.eye(2).view(numpy.matrix))
"""
    with student(code) as remote:
        pair, ordered, number, matrix = remote.fetch(remote.import_("work").values)
    assert type(pair) is tuple and pair == (1, 2)
    assert type(ordered) is dict and ordered == {"a": 1}
    assert type(number) is int
    assert type(matrix) is np.ndarray and matrix.shape == (2, 2)


def test_values_that_cannot_be_sent_are_refused_at_once(shared):
    for value in (object(), {1, 2}, 1j, np.array(["text"]), np.array([None])):
        with pytest.raises(TypeError, match="can't be sent to the child"):
            shared.put(value)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_what_nobody_writes_in_a_new_array_is_nan(shared, dtype):
    numpy = shared.import_("numpy")
    made = [numpy.empty((3, 2), dtype), numpy.empty(shape=5, dtype=dtype), numpy.empty((), dtype)]
    made += [
        numpy.empty_like(numpy.zeros(4, dtype)),
        numpy.empty_like(prototype=np.zeros((2, 2), dtype)),
    ]
    for values, shape in zip(shared.fetch_all(made), [(3, 2), (5,), (), (4,), (2, 2)], strict=True):
        assert (values.dtype, values.shape) == (np.dtype(dtype), shape)
        assert np.isnan(values).all()


def test_new_arrays_of_integers_hold_what_nobody_expects(shared):
    values = shared.fetch(shared.import_("numpy").empty(4, "int32"))
    assert values.tolist() == [np.iinfo("int32").max // 3] * 4


def test_arrays_that_have_values_keep_them(shared):
    numpy = shared.import_("numpy")
    made = [
        numpy.zeros(3),
        numpy.ones(3),
        numpy.full(3, 2.0),
        numpy.arange(3),
        numpy.empty(3, "bool"),
    ]
    zeros, ones, twos, count, flags = shared.fetch_all(made)
    assert [a.tolist() for a in (zeros, ones, twos, count)] == [
        [0] * 3,
        [1] * 3,
        [2] * 3,
        [0, 1, 2],
    ]
    assert flags.shape == (3,)
