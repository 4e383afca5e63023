"""Checks drive a student's code through proxies, and are told in words where it fails."""

import numpy as np
import pytest

from grader.student.remote import StudentError

COUNTER = """
import weakref
log, live = [], weakref.WeakSet()
class Thing:
    def __init__(self, name=None, **more):
        live.add(self); self.name, self.more = name, more
def note(x, *rest, key=None): log.append(x); return x
def alive(): return len(live)
"""


def test_attributes_calls_and_items_work_as_on_local_objects(student):
    with student(COUNTER) as remote:
        work = remote.import_("work")
        thing = work.Thing("a", size=(3, 4), other=work.log)
        thing.name = "b"
        thing.more["extra"] = [1, 2, 3]
        work.log[:] = [thing.name]
        assert remote.fetch(thing.more["extra"][1:]) == [2, 3]
        assert remote.fetch([thing.name, thing.more["size"]]) == ["b", (3, 4)]
        assert remote.fetch(thing.more["other"]) == ["b"]
        assert remote.len(work.log) == 1


def test_a_dict_with_proxies_as_keys_is_a_dict_of_the_objects(student):
    code = "class Node: pass\na, b = Node(), Node()\ndef look(feed): return [feed[a], feed[b]]"
    with student(code) as remote:
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


def test_a_proxy_shows_as_the_words_that_made_it(student):
    with student(COUNTER) as remote:
        note = remote.import_("work").note
        assert repr(note) == "work.note"
        assert repr(note(np.zeros(2)).shape) == "work.note(...).shape"
        assert repr(-note([1])[0]) == "-work.note(...)[0]"


def test_only_listed_builtins_are_served(shared):
    assert shared.fetch(shared.builtin("sorted")([2, 1])) == [1, 2]
    with pytest.raises(ValueError, match="exec is not among"):
        shared.builtin("exec")


def test_a_proxy_of_another_child_is_refused(student, shared):
    foreign = shared.put(1)
    with student() as remote, pytest.raises(ValueError, match="another child"):
        remote.put([foreign])


def test_a_dropped_proxy_frees_its_object(student):
    with student(COUNTER) as remote:
        work = remote.import_("work")
        things = [work.Thing() for _ in range(3)]
        assert remote.fetch(work.alive()) == 3
        del things[1]
        assert remote.fetch(work.alive()) == 2
        del things
        assert remote.fetch(work.alive()) == 0


def test_objects_dropped_behind_an_error_are_freed_too(student):
    with student(COUNTER) as remote:
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


def test_instructions_run_in_order_and_only_when_flushed(student, tmp_path):
    code = COUNTER + "import os\ndef mark(): open('mark', 'w')"
    with student(code) as remote:
        work = remote.import_("work")
        work.mark()
        notes = [work.note(i) for i in range(100)]
        assert not (tmp_path / "mark").exists()
        assert remote.fetch(work.log) == list(range(100))
        assert (tmp_path / "mark").exists()
        del notes


def test_an_error_stops_the_batch_and_names_its_instruction(student):
    with student(COUNTER) as remote:
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


def test_a_students_exception_tells_its_bases_message_and_frames(failure):
    code = "class Odd(AssertionError): pass\ndef f(x):\n    raise Odd('no\\nway')\n"
    code += "def g():\n    f(1)\n"
    error = failure(StudentError, code, "g")
    assert error.types[:3] == ("Odd", "AssertionError", "Exception")
    assert error.message == "no\nway"
    assert error.traceback == "work.py:5 in g\n    f(1)\nwork.py:3 in f\n    raise Odd('no\\nway')"
    assert str(error) == "work.g() raised Odd: no"


def test_a_syntax_error_tells_its_file_and_line(failure, tmp_path):
    error = failure(StudentError, "x = 1\nprint 'two'\n")
    assert error.types[0] == "SyntaxError"
    assert error.doing == "import work"
    assert error.traceback == "work.py:2 in <module>\n    print 'two'"
    assert str(tmp_path) not in error.message


def test_a_missing_module_or_attribute_is_the_students_error(student):
    with student() as remote:
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
def test_no_python_exception_ends_the_child(student, name):
    with student(f"def f(): raise {name}('x')") as remote:
        f = remote.import_("work").f
        with pytest.raises(StudentError) as caught:
            remote.fetch(f())
        assert caught.value.types[0] == name
        assert remote.fetch(1) == 1


def test_endless_recursion_is_told_with_its_first_and_last_frames(failure):
    error = failure(StudentError, "def f():\n    return f()\n", "f")
    assert error.types[0] == "RecursionError"
    assert error.traceback.count("work.py:2 in f") == 16
    assert " more ...]" in error.traceback


def test_an_exception_whose_own_methods_fail_is_still_told(failure):
    code = "class Bad(Exception):\n    def __str__(self): raise SystemExit\ndef f(): raise Bad"
    error = failure(StudentError, code, "f")
    assert (error.types[0], error.message) == ("Bad", "<no text: SystemExit>")


def test_terminal_escapes_are_taken_out_of_messages(failure):
    error = failure(StudentError, "raise ValueError('a\\x1b[2Jb')")
    assert error.message == "a[2Jb"


def test_the_checks_own_words_stand_for_its_instructions(student):
    with student("def f(x): return 1 / x") as remote:
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


def test_what_the_student_prints_is_kept(failure):
    error = failure(StudentError, "print('so far')\nraise ValueError")
    assert error.output == "so far\n"
