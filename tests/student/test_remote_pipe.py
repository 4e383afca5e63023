"""What the worker's pipe and its output say is read with suspicion, and told without ballast."""

import json
import time
import tracemalloc
from pathlib import Path

import pytest

from grader.student import pipe, reply, worker
from grader.student.remote import ProtocolError


def header(**changed):
    whole = {"id": "n", "values": [], "error": None, "arrays": [], **changed}
    return bytearray(json.dumps(whole).encode())


def parse(data, body=0, nonce="n"):
    return reply.parse_reply(*reply.parse_header(data, nonce, body), 3)


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
        "x" * (worker.MAX_TEXT + 1),
        {"l": {"l": []}},
        {"b": -1},
    ],
    ids=lambda v: repr(v)[:30],
)
def test_an_odd_value_is_refused(value):
    with pytest.raises(ProtocolError):
        parse(header(values=[value]))


@pytest.mark.parametrize("around", [
    lambda value: {"l": [value]}, lambda value: {"t": [value]},
    lambda value: {"d": [["key", value]]}, lambda value: {"d": [[value, "value"]]},
], ids=["list", "tuple", "value", "key"])  # fmt: skip
def test_a_value_nested_too_deeply_is_refused(around):
    value = 1
    for _ in range(reply._MAX_DEPTH):
        value = around(value)
    with pytest.raises(ProtocolError, match="nested too deeply"):
        parse(header(values=[around(value)]))


def test_a_value_nested_as_deeply_as_may_be_is_taken():
    value = 1
    for _ in range(reply._MAX_DEPTH):
        value = {"l": [value]}
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
        {"skipped": 10**20},
        {"frames": [["f", 1, "n", "s"]] * (sum(worker.FRAMES) + 1)},
        {"frames": [["f", 10**20, "n", "s"]]},
        {"frames": {"f": 1}},
        {"types": {"E": 1}},
    ],
    ids=str,
)
def test_an_odd_error_is_refused(change):
    error = {"index": 0, "types": ["E"], "message": "", "frames": [], "skipped": 0}
    assert parse(header(error=error))[1] == (0, ("E",), "", "")
    with pytest.raises(ProtocolError):
        parse(header(error={**error, **change}))


def test_the_texts_of_an_error_are_cut_where_they_are_received():
    frames = [["f" * 9999, 1, "n" * 9999, "s" * 9999]] * sum(worker.FRAMES)
    error = {"index": 0, "types": ["E" * 9999] * 9999, "message": "m" * 9999, "frames": frames}
    _, types, message, traceback = parse(header(error={**error, "skipped": 0}))[1]
    assert len(types) == worker.MAX_TYPES and {len(name) for name in types} == {worker.MAX_NAME}
    assert len(message) == worker.MAX_MESSAGE
    assert len(traceback) < sum(worker.FRAMES) * (3 * worker.MAX_NAME + 20)


def test_what_stands_for_an_object_is_cut_where_it_is_received():
    (opaque,), _ = parse(header(values=[{"o": ["t" * 9999, "r" * 9999]}]))
    assert (len(opaque.type_name), len(opaque.text)) == (worker.MAX_NAME, worker.MAX_NAME)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 50_000 + "]" * 50_000, "RecursionError"),
        ("[" + "[]," * 2_000_000 + "[]]", "too many values"),
        ("[" + "1," * 3_000_000 + "1]", "too many values"),
        ('{"a":[' + "{}," * 200_000 + "{}]}", "too many values"),
        ("9" * 2000, "a number is too long"),
        ("-" + "9" * 4_000_000, "a number is too long"),
        ("0." + "9" * 4_000_000, "a number is too long"),
        ("1e999", "a number is too large"),
        ("-1e999", "a number is too large"),
        ('{"l":[],"l":[]}', "stands twice"),
    ],
    ids=lambda value: value[:12],
)
def test_a_bomb_of_json_is_refused_soon_and_in_little_memory(text, said):
    data = bytearray(b'{"id":"n","error":null,"arrays":[],"values":[%s]}' % text.encode())
    assert len(data) <= reply.MAX_HEADER
    tracemalloc.start()
    started = time.process_time()
    with pytest.raises(ProtocolError, match=said):
        parse(data)
    seconds, (_, peak) = time.process_time() - started, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert seconds < 2
    assert peak < 64 << 20


def test_the_largest_header_that_is_read_takes_little_memory():
    value = {"l": [{"l": []} for _ in range(24_000)]}
    data = header(values=[value])
    tracemalloc.start()
    parse(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 << 20


# What was printed

FAULT = """\
Fatal Python error: Segmentation fault
Python runtime state: initialized

Thread 0x00007f53b3fff6c0 [ThreadPool] (most recent call first):
  File "/usr/lib/python3.14/threading.py", line 359 in wait

Current thread 0x00007f53b5c0d740 [python] (most recent call first):
  Garbage-collecting
  File "/usr/lib/python3.14/ctypes/__init__.py", line 519 in string_at
  File "/tree/python/work.py", line 2 in g
  File "/tree/../tree/f.py", line 5 in f
  File "/treehouse/work.py", line 5 in f
  File "<string>", line 1 in <module>
  ...

Current thread's C stack trace (most recent call first):
  Binary file "/usr/lib/libpython3.14.so", at _Py_DumpStack+0x48 [0x7f53b5e8f2b8]
  <truncated rest of calls>

Extension modules: numpy._core._multiarray_umath, numpy.linalg._umath_linalg (total: 2)
"""
TOLD = """\
Fatal Python error: Segmentation fault
  File "python/work.py", line 2 in g
  File "f.py", line 5 in f
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [("", ""), ("x\n\n", "y\n\n  z"), ("no end of line", "[... 9 bytes left out ...]\n")],
)
def test_a_fault_is_cut_to_the_students_frames_and_nothing_beside_it(before, after):
    assert pipe.trimmed(before + FAULT + after, Path("/tree")) == before + TOLD + after


def test_a_fault_that_breaks_off_is_told_as_far_as_it_goes():
    lines = FAULT.splitlines(keepends=True)
    told = [pipe.trimmed("".join(lines[:n]), Path("/tree")) for n in range(1, len(lines))]
    assert all(TOLD.startswith(text) for text in told)
    assert told[-1] == TOLD


def test_a_fault_in_no_file_of_the_student_is_its_first_line():
    first = "Fatal Python error: Segmentation fault\n"
    assert pipe.trimmed(FAULT, Path("/elsewhere")) == first


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n  indented\n\n",
        'Traceback (most recent call last):\n  File "/tree/work.py", line 2, in g\n    g()\nE: x\n',
        '  File "/tree/work.py", line 2 in g\n',
        "Extension modules: none\n",
        "fatal Python error: no\n  more",
        "Fatal Python error: yes\nand more",
    ],
    ids=repr,
)
def test_other_output_stays_as_it_is(text):
    assert pipe.trimmed(text, Path("/tree")) == text
