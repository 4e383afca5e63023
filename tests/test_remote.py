"""Checks drive a student's code through proxies, and nothing it does reaches the grader."""

import json
import math
import os
import re
import sys
import time
from contextlib import contextmanager

import numpy as np
import pytest

from grader import pipe as module
from grader import worker
from grader.remote import (
    BUILTINS,
    ChildDied,
    ChildError,
    ChildTimeout,
    Opaque,
    OutputFlood,
    ProtocolError,
    Remote,
    StartError,
    StudentError,
)
from grader.sandbox import Limits

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and prctl")

# Writes to every pipe that the process has beyond the standard ones.
SHOUT = """
import json, os, stat, struct
def shout(data):
    for fd in range(3, 64):
        try:
            stat.S_ISFIFO(os.fstat(fd).st_mode) and os.write(fd, data)
        except OSError:
            pass
def forge(arrays, body, size=None, **header):
    text = json.dumps({"id": "x", "values": [], "error": None, "arrays": arrays, **header}).encode()
    shout(struct.pack("<IQ", len(text) if size is None else size, body) + text)
"""


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A child for tests that leave it usable."""
    root = tmp_path_factory.mktemp("shared")
    with Remote(sys.executable, [str(root)], root) as remote:
        yield remote


@contextmanager
def student(tmp_path, code="", wall=20.0, output=1 << 20, cpu=None, **options):
    """A child over a tree with one module, `work`, which holds `code`."""
    (tmp_path / "work.py").write_text(code)
    limits = Limits(wall=wall, output=output, cpu=cpu)
    with Remote(sys.executable, [str(tmp_path)], tmp_path, limits, **options) as remote:
        yield remote


def expected(kind, words):
    return pytest.raises(kind, match=re.escape(words))


def failure(kind, tmp_path, code, call=None, **options):
    """The error of importing `code`, or of calling one of its functions."""
    with pytest.raises(kind) as caught, student(tmp_path, code, **options) as remote:
        work = remote.import_("work")
        if call:
            getattr(work, call)()
        remote.flush()
    return caught.value


# Values

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


@pytest.mark.parametrize("dtype", sorted(module.DTYPES))
def test_arrays_and_scalars_of_every_type_survive(shared, dtype):
    array = np.array([[0, 1], [1, 0]]).astype(dtype)
    matrix, scalar = shared.fetch_all([shared.put(array), shared.put(array[0, 1])])
    assert matrix.tobytes() == array.tobytes() and matrix.dtype == array.dtype
    assert type(scalar) is type(array[0, 1]) and scalar == array[0, 1]


def test_a_large_array_survives(shared):
    array = np.arange(5_000_000, dtype=np.float64)
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


def test_what_is_too_deep_too_long_or_has_no_repr_arrives_as_opaque(tmp_path):
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
    with student(tmp_path, code) as remote:
        work = remote.import_("work")
        deep, long, big, mute, objects = remote.fetch_all(
            [work.deep, work.long, work.big, work.mute, work.objects]
        )
    assert isinstance(deep, list)
    assert long.type_name == "str"
    assert big.type_name == "int"
    assert mute == Opaque("Mute", "<no text: SystemExit>")
    assert objects.type_name == "ndarray"


def test_subclasses_arrive_as_their_plain_base(tmp_path):
    code = """
import collections, enum, numpy
Pair = collections.namedtuple("Pair", "a b")
values = [Pair(1, 2), collections.OrderedDict(a=1), enum.IntEnum("E", "X").X]
values.append(numpy.eye(2).view(numpy.matrix))
"""
    with student(tmp_path, code) as remote:
        pair, ordered, number, matrix = remote.fetch(remote.import_("work").values)
    assert type(pair) is tuple and pair == (1, 2)
    assert type(ordered) is dict and ordered == {"a": 1}
    assert type(number) is int
    assert type(matrix) is np.ndarray and matrix.shape == (2, 2)


def test_values_that_cannot_be_sent_are_refused_at_once(shared):
    for value in (object(), {1, 2}, 1j, np.array(["text"]), np.array([None])):
        with pytest.raises(TypeError, match="can't be sent to the child"):
            shared.put(value)


def test_both_sides_know_the_same_types_and_builtins():
    assert module.DTYPES == worker.DTYPES
    assert set(worker.BUILTINS) == BUILTINS
    assert module._PREFIX.format == worker.PREFIX.format


# Proxies

COUNTER = """
import weakref
log, live = [], weakref.WeakSet()
class Thing:
    def __init__(self, name=None, **more):
        live.add(self); self.name, self.more = name, more
def note(x, *rest, key=None): log.append(x); return x
def alive(): return len(live)
"""


def test_attributes_calls_and_items_work_as_on_local_objects(tmp_path):
    with student(tmp_path, COUNTER) as remote:
        work = remote.import_("work")
        thing = work.Thing("a", size=(3, 4), other=work.log)
        thing.name = "b"
        thing.more["extra"] = [1, 2, 3]
        work.log[:] = [thing.name]
        assert remote.fetch(thing.more["extra"][1:]) == [2, 3]
        assert remote.fetch([thing.name, thing.more["size"]]) == ["b", (3, 4)]
        assert remote.fetch(thing.more["other"]) == ["b"]
        assert remote.len(work.log) == 1


def test_a_dict_with_proxies_as_keys_is_a_dict_of_the_objects(tmp_path):
    code = "class Node: pass\na, b = Node(), Node()\ndef look(feed): return [feed[a], feed[b]]"
    with student(tmp_path, code) as remote:
        work = remote.import_("work")
        assert remote.fetch(work.look({work.a: 1, work.b: 2})) == [1, 2]


def test_arithmetic_mixes_proxies_and_local_values(shared):
    local = np.array([[1.0, 2.0], [3.0, 4.0]])
    w = shared.put(local)
    results = [w - 0.5 * w, 1 - w, w + local, local + w, w / 2, 2 / w, -w, w @ local, local @ w]
    expected = [local - 0.5 * local, 1 - local, 2 * local, 2 * local]
    expected += [local / 2, 2 / local, -local, local @ local, local @ local]
    results += [np.float32(2) * w, w * np.float64(3)]
    expected += [2 * local, 3 * local]
    for got, want in zip(shared.fetch_all(results), expected, strict=True):
        np.testing.assert_array_equal(got, want)


def test_a_sequence_unpacks_into_proxies(shared):
    a, b = shared.put([1, "two"])
    assert shared.fetch_all([b, a]) == ["two", 1]


def test_a_proxy_has_no_truth_and_no_equality(shared):
    proxy = shared.put(0)
    with pytest.raises(TypeError, match="fetch it first"):
        bool(proxy)
    with pytest.raises(TypeError, match="compare fetched values"):
        proxy == 0  # noqa: B015


def test_a_proxy_shows_as_the_words_that_made_it(tmp_path):
    with student(tmp_path, COUNTER) as remote:
        note = remote.import_("work").note
        assert repr(note) == "work.note"
        assert repr(note(np.zeros(2)).shape) == "work.note(...).shape"
        assert repr(-note([1])[0]) == "-work.note(...)[0]"


def test_only_listed_builtins_are_served(shared):
    assert shared.fetch(shared.builtin("sorted")([2, 1])) == [1, 2]
    with pytest.raises(ValueError, match="exec is not among"):
        shared.builtin("exec")


def test_a_proxy_of_another_child_is_refused(shared, tmp_path):
    foreign = shared.put(1)
    with student(tmp_path) as remote, pytest.raises(ValueError, match="another child"):
        remote.put([foreign])


def test_a_dropped_proxy_frees_its_object(tmp_path):
    with student(tmp_path, COUNTER) as remote:
        work = remote.import_("work")
        things = [work.Thing() for _ in range(3)]
        assert remote.fetch(work.alive()) == 3
        del things[1]
        assert remote.fetch(work.alive()) == 2
        del things
        assert remote.fetch(work.alive()) == 0


def test_objects_dropped_behind_an_error_are_freed_too(tmp_path):
    with student(tmp_path, COUNTER) as remote:
        work = remote.import_("work")
        thing = work.Thing()
        remote.flush()
        missing = work.missing
        del thing
        with pytest.raises(StudentError):
            remote.flush()
        assert remote.fetch(work.alive()) == 0
        del missing


# Order, errors and their texts


def test_instructions_run_in_order_and_only_when_flushed(tmp_path):
    code = COUNTER + "import os\ndef mark(): open('mark', 'w')"
    with student(tmp_path, code) as remote:
        work = remote.import_("work")
        work.mark()
        notes = [work.note(i) for i in range(100)]
        assert not (tmp_path / "mark").exists()
        assert remote.fetch(work.log) == list(range(100))
        assert (tmp_path / "mark").exists()
        del notes


def test_an_error_stops_the_batch_and_names_its_instruction(tmp_path):
    with student(tmp_path, COUNTER) as remote:
        work = remote.import_("work")
        work.note(1)
        x = np.zeros((3, 4), np.float32)
        bad = work.Thing(x, "s", 2.5, key=work.log)
        work.note(2)
        with pytest.raises(StudentError) as caught:
            remote.flush()
        assert caught.value.doing == "work.Thing(float32 (3, 4), 's', 2.5, key=work.log)"
        assert str(caught.value).startswith(f"{caught.value.doing} raised TypeError: ")
        assert remote.fetch(work.log) == [1]
        with pytest.raises(StudentError, match="raised TypeError"):
            remote.fetch(bad)


def test_a_students_exception_tells_its_bases_message_and_frames(tmp_path):
    code = "class Odd(AssertionError): pass\ndef f(x):\n    raise Odd('no\\nway')\n"
    code += "def g():\n    f(1)\n"
    error = failure(StudentError, tmp_path, code, "g")
    assert error.types[:3] == ("Odd", "AssertionError", "Exception")
    assert error.message == "no\nway"
    assert error.traceback == "work.py:5 in g\n    f(1)\nwork.py:3 in f\n    raise Odd('no\\nway')"
    assert str(error) == "work.g() raised Odd: no"


def test_a_syntax_error_tells_its_file_and_line(tmp_path):
    error = failure(StudentError, tmp_path, "x = 1\nprint 'two'\n")
    assert error.types[0] == "SyntaxError"
    assert error.doing == "import work"
    assert error.traceback == "work.py:2 in <module>\n    print 'two'"
    assert str(tmp_path) not in error.message


def test_a_missing_module_or_attribute_is_the_students_error(tmp_path):
    with student(tmp_path) as remote:
        for queue, kind in (
            (lambda: remote.import_("absent"), "ModuleNotFoundError"),
            (lambda: remote.import_("work").absent, "AttributeError"),
        ):
            proxy = queue()
            with pytest.raises(StudentError) as caught:
                remote.flush()
            assert caught.value.types[0] == kind
            assert caught.value.traceback == ""
            del proxy


@pytest.mark.parametrize(
    "name", ["SystemExit", "KeyboardInterrupt", "GeneratorExit", "MemoryError"]
)
def test_no_python_exception_ends_the_child(tmp_path, name):
    with student(tmp_path, f"def f(): raise {name}('x')") as remote:
        f = remote.import_("work").f
        with pytest.raises(StudentError) as caught:
            remote.fetch(f())
        assert caught.value.types[0] == name
        assert remote.fetch(1) == 1


def test_endless_recursion_is_told_with_its_first_and_last_frames(tmp_path):
    error = failure(StudentError, tmp_path, "def f():\n    return f()\n", "f")
    assert error.types[0] == "RecursionError"
    assert error.traceback.count("work.py:2 in f") == 16
    assert " more ...]" in error.traceback


def test_an_exception_whose_own_methods_fail_is_still_told(tmp_path):
    code = "class Bad(Exception):\n    def __str__(self): raise SystemExit\ndef f(): raise Bad"
    error = failure(StudentError, tmp_path, code, "f")
    assert (error.types[0], error.message) == ("Bad", "<no text: SystemExit>")


def test_terminal_escapes_are_taken_out_of_messages(tmp_path):
    error = failure(StudentError, tmp_path, "raise ValueError('a\\x1b[2Jb')")
    assert error.message == "a[2Jb"


def test_the_checks_own_words_stand_for_its_instructions(tmp_path):
    with student(tmp_path, "def f(x): return 1 / x") as remote:
        f = remote.import_("work").f
        with remote.doing("f(1), which is fine"):
            f(1)
        with remote.doing("f(0)"):
            bad = f(0)
        f(1)
        with pytest.raises(StudentError) as caught:
            remote.flush()
        assert caught.value.doing == "f(0)"
        assert str(caught.value) == "f(0) raised ZeroDivisionError: division by zero"
        del bad


def test_what_the_student_prints_is_kept(tmp_path):
    error = failure(StudentError, tmp_path, "print('so far')\nraise ValueError")
    assert error.output == "so far\n"


# Death, delay, floods


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import os; os._exit(0)", "ended with exit code 0 before the check was over"),
        ("import os; os._exit(3)", "ended with exit code 3 before the check was over"),
        ("import ctypes; ctypes.string_at(0)", "was killed by signal 11 (SIGSEGV)"),
        ("import os; os.abort()", "was killed by signal 6 (SIGABRT)"),
        ("import os; os.kill(os.getpid(), 9)", "was killed by signal 9 (SIGKILL)"),
    ],
)
def test_a_child_that_ends_is_told_with_how_and_where(tmp_path, code, words):
    error = failure(ChildDied, tmp_path, f"def f():\n    {code}\n", "f")
    assert str(error) == f"the process {words}; it was running: work.f()"


def test_a_library_that_exits_with_success_at_its_import_is_a_death(tmp_path):
    error = failure(ChildDied, tmp_path, "import os; os._exit(0)")
    assert (error.rc, error.doing) == (0, "import work")


def test_a_death_in_the_middle_of_a_batch_names_the_instruction(tmp_path):
    code = "import os\ndef f(n):\n    if n == 3: os._exit(1)\n"
    with pytest.raises(ChildDied) as caught, student(tmp_path, code) as remote:
        work = remote.import_("work")
        for n in range(10):
            work.f(n)
    assert caught.value.doing == "work.f(3)"


def test_a_child_that_ends_between_two_calls_has_no_last_word(tmp_path):
    code = "import os, threading\ndef f(): threading.Timer(0.1, os._exit, [0]).start()"
    with expected(ChildDied, "between two calls"), student(tmp_path, code) as remote:
        assert remote.fetch(remote.import_("work").f()) is None
        time.sleep(0.5)


def test_a_dead_child_stays_dead_for_whoever_asks_again(tmp_path):
    with pytest.raises(ChildDied) as second, student(tmp_path, "import os; os._exit(0)") as remote:
        remote.import_("work")
        with pytest.raises(ChildDied) as first:
            remote.flush()
        remote.put(1)
    assert second.value is first.value


def test_an_endless_loop_is_a_timeout_of_the_whole_check(tmp_path):
    error = failure(ChildTimeout, tmp_path, "def f():\n    while True: pass", "f", wall=0.8)
    assert error.seconds == 0.8
    assert str(error) == "not finished within 0.8 s: work.f()"


def test_a_deadline_holds_for_what_is_queued_inside_it(tmp_path):
    code = "import time\ndef f(): time.sleep(60)\ndef g(): pass"
    with pytest.raises(ChildTimeout) as caught, student(tmp_path, code) as remote:
        work = remote.import_("work")
        with remote.deadline(10):
            work.g()
        with remote.deadline(0.2), remote.doing("a nap"):
            work.f()
    assert (caught.value.seconds, caught.value.doing) == (0.2, "a nap")


def test_a_deadline_is_over_after_its_block(tmp_path):
    with student(tmp_path) as remote:
        with remote.deadline(0.1):
            pass
        time.sleep(0.15)
        assert remote.fetch(1) == 1


def test_half_a_reply_and_then_silence_is_a_timeout(tmp_path):
    code = SHOUT + "import time\nshout(b'half')\ntime.sleep(60)"
    assert failure(ChildTimeout, tmp_path, code, wall=0.8).doing == "import work"


def test_a_child_that_does_not_read_a_large_request_is_a_timeout(tmp_path):
    code = "import os, signal, threading\n"
    code += "def f(): threading.Timer(0.1, os.kill, [os.getpid(), signal.SIGSTOP]).start()"
    with pytest.raises(ChildTimeout) as caught, student(tmp_path, code, wall=1.5) as remote:
        remote.fetch(remote.import_("work").f())
        time.sleep(0.3)
        remote.fetch(np.zeros(1_000_000))
    assert str(caught.value) == "not finished within 1.5 s: nothing (between two calls)"


@linux_only
def test_too_much_processor_time_is_a_timeout(tmp_path):
    code = "def f():\n    while True: pass"
    error = failure(ChildTimeout, tmp_path, code, "f", cpu=1)
    assert str(error) == "not finished within 1 s of processor time: work.f()"


def test_a_destructor_that_crashes_is_told_as_the_freeing_of_its_object(tmp_path):
    code = "import ctypes\nclass Bad:\n    def __del__(self): ctypes.string_at(0)"
    with pytest.raises(ChildDied) as caught, student(tmp_path, code) as remote:
        bad = remote.import_("work").Bad()
        remote.flush()
        del bad
        remote.flush()
    assert caught.value.doing == "freeing work.Bad(...)"


def test_a_child_that_closes_its_pipes_and_lingers_is_a_death(tmp_path):
    code = "import os, time\nos.closerange(3, 64)\ntime.sleep(60)"
    error = failure(ChildDied, tmp_path, code)
    assert error.rc is None
    assert "closed its reply pipe before the check was over" in str(error)


def test_a_child_killed_while_its_copy_holds_the_pipe_is_a_death_at_once(tmp_path):
    code = "import os, time\nif os.fork() == 0: time.sleep(60)\nos._exit(7)"
    assert failure(ChildDied, tmp_path, code, wall=10.0).rc == 7


def test_endless_printing_is_a_flood(tmp_path):
    code = "def f():\n    while True: print('x' * 1000)"
    error = failure(OutputFlood, tmp_path, code, "f", output=100_000)
    assert error.limit == 100_000
    assert str(error) == "printed more than 100000 bytes while running: work.f()"


def test_a_worker_that_cannot_start_is_no_fault_of_the_student(tmp_path):
    with (
        expected(StartError, "cannot run no-such-python"),
        Remote("no-such-python", [], tmp_path) as remote,
    ):
        remote.fetch(1)
    assert not issubclass(StartError, ChildError)


# Hostile code


def test_garbage_in_the_reply_pipe_is_a_malformed_reply(tmp_path):
    error = failure(ProtocolError, tmp_path, SHOUT + "shout(b'garbage' * 100)")
    assert str(error).startswith("the process sent a malformed reply: ")


@pytest.mark.parametrize(
    ("forgery", "words"),
    [
        ("forge([], 0)", "answers no question"),
        ("forge([], 0, size=1 << 31)", "more than allowed"),
        ("forge([['float64', [1 << 40]]], 8 << 40)", "more than allowed"),
        ("shout(struct.pack('<IQ', 9, 0) + b'[1, 2, 3]')", "no object"),
        ("shout(struct.pack('<IQ', 9, 0) + b'not json!')", "JSONDecodeError"),
        ("shout(struct.pack('<IQ', 9, 0) + bytes([200] * 9))", "UnicodeDecodeError"),
        ("shout(struct.pack('<IQ', 99999, 0) + b'[' * 99999)", "RecursionError"),
        ("shout(struct.pack('<IQ', 9999, 0) + b'1' * 9999)", "ValueError"),
    ],
)
def test_a_forged_frame_is_a_malformed_reply(tmp_path, forgery, words):
    assert words in str(failure(ProtocolError, tmp_path, SHOUT + forgery))


def header(**changed):
    whole = {"id": "n", "values": [], "error": None, "arrays": [], **changed}
    return bytearray(json.dumps(whole).encode())


def parse(data, body=0, nonce="n"):
    return module.parse_reply(*module._parse_header(data, nonce, body), 3)


@pytest.mark.parametrize(
    ("arrays", "body"),
    [
        ([["object", [1]]], 8),
        ([["float64", [2]]], 8),
        ([["float64", [-1, -1]]], 8),
        ([["float64", [1.0]]], 8),
        ([["float64", [True]]], 8),
        ([["float64", 1]], 8),
        ([["float64", [0, 1 << 80]]], 0),
        ([["float64", [1] * 99]], 8),
        ([[["float64"], [1]]], 8),
        ([[]], 0),
        (None, 0),
    ],
)
def test_an_odd_list_of_arrays_is_refused(arrays, body):
    with pytest.raises(ProtocolError):
        parse(header(arrays=arrays), body)


@pytest.mark.parametrize(
    "value",
    [
        {"a": 0},
        {"a": "x"},
        {"r": 1},
        {"x": []},
        {},
        {"l": [], "t": []},
        {"l": 1},
        {"d": [[{"l": []}, 1]]},
        {"d": [1]},
        {"o": ["one"]},
        {"o": [1, 2]},
        [],
        "x" * (module._MAX_TEXT + 1),
    ],
    ids=lambda v: repr(v)[:30],
)
def test_an_odd_value_is_refused(value):
    with pytest.raises(ProtocolError):
        parse(header(values=[value]))


def test_a_value_nested_too_deeply_is_refused():
    value = 1
    for _ in range(100):
        value = {"l": [value]}
    with pytest.raises(ProtocolError, match="nested too deeply"):
        parse(header(values=[value]))


@pytest.mark.parametrize(
    "change",
    [
        {"index": 3},
        {"index": -1},
        {"index": "0"},
        {"types": []},
        {"types": [1]},
        {"types": None},
        {"message": 5},
        {"frames": [1]},
        {"frames": [["f", "one", "n", "s"]]},
        {"skipped": "many"},
    ],
    ids=str,
)
def test_an_odd_error_is_refused(change):
    error = {"index": 0, "types": ["E"], "message": "", "frames": [], "skipped": 0}
    assert parse(header(error=error))[1] == (0, ("E",), "", "")
    with pytest.raises(ProtocolError):
        parse(header(error={**error, **change}))


def test_a_frame_left_in_the_pipe_does_not_answer_the_next_question(tmp_path):
    code = SHOUT + "import threading\ndef f(): threading.Timer(0.1, forge, [[], 0]).start()"
    with expected(ProtocolError, "answers no question"), student(tmp_path, code) as remote:
        remote.fetch(remote.import_("work").f())
        time.sleep(0.3)
        remote.fetch(1)


def test_a_reply_larger_than_allowed_is_refused(tmp_path):
    code = "import numpy\nx = numpy.zeros(1000)"
    with (
        expected(ProtocolError, "more than allowed"),
        student(tmp_path, code, max_reply=7999) as remote,
    ):
        remote.fetch(remote.import_("work").x)


@pytest.mark.parametrize(
    "sabotage",
    [
        "import builtins\nfor n in ('len', 'isinstance', 'type'): setattr(builtins, n, None)",
        "import json\njson.dumps = json.loads = json.JSONEncoder.encode = None",
        "import sys\nfor name in list(sys.modules): sys.modules[name] = None",
        "import sys, numpy\nnumpy.asarray = numpy.ndarray = numpy.empty = None\nsys.stdout = None",
        "import __main__ as main\nfor n in list(vars(main)): setattr(main, n, None)",
        "import os\nos.readv = os.write = os.pwrite = os.getpid = None",
        "import sys\nsys.setrecursionlimit(30)",
    ],
)
def test_sabotage_of_the_interpreter_is_answered_truly_or_fails_in_kind(tmp_path, sabotage):
    try:
        with student(tmp_path, sabotage) as remote:
            remote.import_("work")
            assert remote.fetch(remote.put(np.arange(3))).tolist() == [0, 1, 2]
    except (ChildDied, ProtocolError, StudentError):
        pass


def test_replaced_numpy_os_and_builtin_functions_do_not_reach_the_worker(tmp_path):
    code = "import numpy, os, builtins\n"
    code += "def f(): numpy.asarray = os.write = builtins.len = builtins.isinstance = None"
    with student(tmp_path, code) as remote:
        remote.import_("work").f()
        assert remote.fetch(remote.put(np.arange(3))).tolist() == [0, 1, 2]


def test_a_forked_copy_never_answers(tmp_path):
    code = "import os, time\ndef f():\n    if os.fork() == 0: return 'copy'\n"
    code += "    time.sleep(0.3)\n    return 'parent'"
    with student(tmp_path, code) as remote:
        assert remote.fetch(remote.import_("work").f()) == "parent"
        assert remote.fetch(2) == 2


def test_programs_started_by_the_student_do_not_hold_the_pipes(tmp_path):
    code = """
import subprocess, sys
look = "import os; print([n for n in range(3, 64) if os.path.exists(f'/dev/fd/{n}')])"
def f():
    command = [sys.executable, "-c", look]
    return subprocess.run(command, close_fds=False, capture_output=True, text=True).stdout
"""
    with student(tmp_path, code) as remote:
        held = json.loads(remote.fetch(remote.import_("work").f()))
    assert len(held) <= 1  # the folder being looked at


@linux_only
def test_a_daemon_is_dead_after_the_check(tmp_path):
    code = """
import os, time
def f():
    read, write = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(write, str(os.getpid()).encode())
            time.sleep(60)
        os._exit(0)
    return int(os.read(read, 20))
"""
    with student(tmp_path, code) as remote:
        daemon = remote.fetch(remote.import_("work").f())
        os.kill(daemon, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(daemon, 0)


def test_the_check_can_fail_without_leaving_a_process(tmp_path):
    with pytest.raises(ZeroDivisionError), student(tmp_path) as remote:
        pid = remote.fetch(remote.import_("os").getpid())
        raise ZeroDivisionError
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_nothing_stays_open_after_a_check(tmp_path):
    def once():
        with student(tmp_path) as remote:
            remote.fetch(1)
        return len(os.listdir("/dev/fd"))

    assert once() == once()


def test_the_tree_is_not_littered_with_compiled_files(tmp_path):
    with student(tmp_path) as remote:
        remote.import_("work")
    assert [path.name for path in tmp_path.iterdir()] == ["work.py"]
