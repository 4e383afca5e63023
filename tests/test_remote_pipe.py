"""What the worker's pipe and its output say is read with suspicion, and told without ballast."""

import json
from pathlib import Path

import pytest

from grader import pipe
from grader.remote import ProtocolError


def header(**changed):
    whole = {"id": "n", "values": [], "error": None, "arrays": [], **changed}
    return bytearray(json.dumps(whole).encode())


def parse(data, body=0, nonce="n"):
    return pipe.parse_reply(*pipe._parse_header(data, nonce, body), 3)


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
        "x" * (pipe._MAX_TEXT + 1),
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
