"""However a program ends, what the checked build found is told, and nothing that is not so."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import check_kernels
import checked
from findings.discarded import is_discarded

SOURCE = Path(__file__).resolve().parents[1] / "emulator" / "checked" / "ends.cu"


@pytest.fixture(scope="module")
def kit(tmp_path_factory):
    """The checked build, and ends.cu in it: a program and a library."""
    kit = checked.CheckedKit(tmp_path_factory.mktemp("ends"))
    kit.build_library()
    kit.build_program(SimpleProgram)
    compiled = kit.folder / "ends.cu.o"
    rpath = f"-Wl,-rpath,{kit.folder}"
    done = kit.call(
        *kit.cxx, "-shared", compiled, "-o", kit.folder / "libends.so", kit.library, rpath
    )
    assert done.returncode == 0, done.stderr
    return kit


class SimpleProgram:
    """What the kit has to know of ends.cu."""

    path, name, fixed = SOURCE, "ends", False


def found(kit, *words):
    """(kind, line) of what is found in a case, and how the process ended."""
    path = kit.folder / "findings"
    path.unlink(missing_ok=True)
    done = kit.call(kit.folder / "ends", *words, env={"EMULATOR_FINDINGS": str(path)})
    findings = checked.checked_findings.read_report(str(path)) if path.exists() else []
    return [finding for finding in findings if not finding.is_advice], done


def line_of(text):
    """The number of the line that ends with a comment."""
    lines = SOURCE.read_text().split("\n")
    return 1 + next(i for i, line in enumerate(lines) if line.endswith(f"// {text}"))


def places(findings):
    """Kind and line of each."""
    return {(finding.kind, finding.at.line) for finding in findings}


PAST_THE_END = ("out-of-bounds write global", line_of("past the end"))


# --- the program's own ends ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "status"),
    [
        ("normally", 0),
        ("exit", 1),
        ("_exit", 1),
        ("quick_exit", 1),
        ("abort", -signal.SIGABRT),
        ("exception", -signal.SIGABRT),
        ("crash", -signal.SIGSEGV),
    ],
)
def test_what_was_found_before_the_end_is_kept(kit, how, status):
    findings, done = found(kit, "ends", how)
    assert done.returncode == status
    assert places(findings) == {PAST_THE_END}
    assert findings[0].count == 16


def test_an_assertion_on_the_host_is_a_finding(kit):
    findings, done = found(kit, "ends", "host assertion")
    assert places(findings) == {PAST_THE_END, ("assertion failed", line_of("on the host"))}
    assert "Assertion `how == nullptr` failed." in done.stderr


@pytest.mark.parametrize(("how", "line"), [("assert", "fails"), ("trap", "trap")])
def test_an_assertion_in_a_kernel_is_a_finding(kit, how, line):
    (finding,), _ = found(kit, "asserts", how)
    assert (finding.kind, finding.at.line) == ("assertion failed", line_of(line))
    assert finding.kernel in ("assert_below", "trap_at") and finding.thread_index == (5, 0, 0)
    assert finding.detail == ("__trap()" if how == "trap" else "Assertion `i < n` failed.")


@pytest.mark.parametrize("how", ["exit 0", "return 1", "kernel failed"])
def test_memory_of_a_program_that_gave_up_is_no_leak(kit, how):
    findings, _ = found(kit, "leaves", how)
    assert {finding.kind for finding in findings} <= {"assertion failed"}


def test_memory_of_a_program_that_came_to_its_end_is_a_leak(kit):
    assert places(found(kit, "leaves", "")[0]) == {("leak", line_of("kept"))}


# --- signals, and check_kernels.py ---------------------------------------------------------------


def check(kit, *words):
    """A process of check_kernels.py that runs a case, once the case says that it is ready."""
    command = [sys.executable, "-u", check_kernels.__file__, "--", kit.folder / "ends", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGKILL"])
def test_a_signal_is_told_with_what_was_found_before(kit, name):
    process = check(kit, "ends", "wait")
    number = getattr(signal, name)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    os.kill(int(children.read_text()) if name == "SIGKILL" else process.pid, number)
    said = process.communicate(timeout=600)[0]
    assert process.returncode == 1
    assert "1. Write outside of a buffer in global memory" in said
    assert f"ends was ended by signal {number:d} ({name}), and what would have come" in said


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("kill -SEGV $$", "No finding, but sh was ended by signal 11 (SIGSEGV): what would have"),
        ("exit 139", "No finding, but sh ended with exit status 139, as after signal 11 (SIGSEGV)"),
    ],
)
def test_a_signal_is_never_nothing_wrong(script, said):
    command = [sys.executable, check_kernels.__file__, "--", "sh", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert said in done.stdout and "Nothing wrong" not in done.stdout


@pytest.mark.parametrize(("how", "lost"), [("crash", True), ("_exit", True), ("exit", False)])
def test_a_process_that_the_command_started_is_looked_after(kit, how, lost):
    script = f"{kit.folder}/ends ends {how}; true"
    command = [sys.executable, check_kernels.__file__, "--", "sh", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True)
    assert "1. Write outside of a buffer in global memory" in done.stdout
    assert (f"({kit.folder}/ends) was ended by a signal, or by _exit" in done.stdout) == lost


@pytest.mark.parametrize(
    ("words", "ends", "text"),
    [
        ("b'asserts', b''", "", "(Assertion `i < n` failed.)"),
        ("b'ends', b'host assertion'", "SIGABRT", "(Assertion `how == nullptr` failed.)"),
        ("b'ends', b'crash'", "SIGSEGV", "Write outside of a buffer"),
    ],
)
def test_findings_show_through_what_pytest_captures(kit, tmp_path, words, ends, text):
    library = kit.folder / "libends.so"
    code = f"import ctypes\ndef test_it():\n    ctypes.CDLL({str(library)!r}).run_case({words})\n"
    (tmp_path / "test_it.py").write_text(code)
    run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", tmp_path / "test_it.py"]
    done = subprocess.run(
        [sys.executable, check_kernels.__file__, "--", *run],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert text in done.stdout
    assert (f"({ends})" in done.stdout) == bool(ends)


# --- errors that nobody read ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "kind", "lines"),
    [
        ("nobody", "call error unread", {"unread copy", "unread fill"}),
        ("one of two", "call error unread", {"lost"}),
        ("in a thread", "call error unread", {"unread in a thread"}),
        ("launch", "launch error unread", {"refused"}),
    ],
)
def test_an_error_that_nobody_read_is_a_finding(kit, how, kind, lines):
    findings, _ = found(kit, "forgets", how)
    assert places(findings) == {(kind, line_of(line)) for line in lines}


def test_an_error_that_was_read_or_perhaps_looked_at_is_none(kit):
    findings, done = found(kit, "reads")
    assert findings == []
    assert done.stdout.count("# cudaError") == 5, done.stdout


@pytest.mark.parametrize(
    ("text", "thrown_away"),
    [
        ("{ f(a, (b)); }", True),
        ("x; ::f(a);", True),
        ("if (f(a)) f(b); else f(c);", False),
        ("if (a) f(b); else f(c);", True),
        ("for (;;) f<float>(a);", True),
        ("/* f(a) == */ ; f(')', \")\");", True),
        ("e = f(a);", False),
        ("check(f(a));", False),
        ("return f(a);", False),
        ("(void)f(a);", False),
        ("int g = a ? f(b) : f(c);", False),
        ("{ f(a) == 0; }", False),
        ("e = ({ f(a); });", False),
        ("g([&](int) { f(a); });", True),
        ("x; object.f(a);", False),
        ("x; not_f(a);", False),
        ("#define CALL f(a);", False),
        ("x, f(a);", False),
        ("case 1: f(a);", False),  # perhaps a part of ?:
    ],
)
def test_a_statement_throws_away_what_it_calls(text, thrown_away):
    assert is_discarded("{;\n" + text + "\n}", 2, "f") == thrown_away


# --- addresses -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "kind", "said"),
    [
        ("host memory", "host pointer in kernel", None),
        ("null", "host pointer in kernel", "the address is null"),
        ("behind null", "host pointer in kernel", "an index behind a null pointer"),
        ("far", "out-of-bounds write global", "there is nothing at this address"),
        ("far before", "out-of-bounds write global", "there is nothing at this address"),
    ],
)
def test_an_address_is_called_what_it_is(kit, how, kind, said):
    (finding,), _ = found(kit, "astray", how)
    assert (finding.kind, finding.at.line) == (kind, line_of("astray"))
    assert (said in finding.detail) if said else finding.detail is None
    if kind != "host pointer in kernel":
        assert finding.memory.name == "out" and finding.memory.size == 64
        assert abs(finding.memory.offset) > 1 << 33


@pytest.mark.parametrize(("how", "offset"), [("behind managed", 64), ("before managed", -20)])
def test_an_address_beside_managed_memory_is_outside_of_it(kit, how, offset):
    (finding,), _ = found(kit, "astray", how)
    assert (finding.kind, finding.at.line) == ("out-of-bounds write global", line_of("astray"))
    assert (finding.memory.size, finding.memory.offset) == (64, offset)


def test_another_pointer_near_managed_memory_is_the_host_s(kit):
    """Heaps put what is allocated side by side."""
    (finding,), _ = found(kit, "astray", "beside managed")
    assert (finding.kind, finding.memory.name) == ("host pointer in kernel", None)


def test_a_stack_that_overflows_is_called_so(kit):
    (finding,), done = found(kit, "recurses")
    assert finding.kind == "stack overflow" and finding.kernel == "recurse"
    assert "the stack overflowed" in done.stderr


def test_a_program_started_by_hand_says_in_words_what_is_found(kit):
    done = kit.call("env", "-u", "EMULATOR_FINDINGS", kit.folder / "ends", "ends", "abort")
    lines = [line for line in done.stderr.splitlines() if "found: " in line]
    words = "emulated GPU: found: out-of-bounds write global in kernel "
    assert [line.startswith(words) for line in lines] == [True], done.stderr
    assert "thread (" in lines[0] and lines[0].endswith("check_kernels.py -- PROGRAM shows where")


def test_emucc_runs_a_checked_program_and_shows_the_line(kit):
    emucc = Path(check_kernels.__file__).with_name("emucc.py")
    done = kit.call(sys.executable, emucc, "--checked", "--run", SOURCE, "--", "ends", "abort")
    assert done.returncode == 1
    assert f"{SOURCE.name}:{PAST_THE_END[1]}" in done.stdout
    assert "SIGABRT" in done.stdout and "found: {" not in done.stderr
