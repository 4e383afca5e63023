"""Submissions are read in a process of their own: what it gives, and when it is ended."""

import os
import time

import pytest

from grader.submission import contained_reader
from grader.submission import reader as submission
from grader.submission.contained_reader import Reader, load_contained
from packed import HOLES, PRISTINE, WORK, folder, pack, tar, zipped


@pytest.fixture
def pristine(tmp_path):
    return folder(tmp_path / "pristine", PRISTINE)


@pytest.fixture
def limits(monkeypatch):
    """Starts the process with other limits, and more code."""

    def change(more="", **values):
        changes = [f"contained_reader._{name.upper()} = {values[name]}" for name in values]
        lines = ["from grader.submission import contained_reader, reader", *changes, more]
        code = "\n".join([*lines, "contained_reader.serve()"])
        head = "import sys; sys.path.insert(0, sys.argv[1]); "
        monkeypatch.setattr(contained_reader, "_CODE", head + code)

    return change


@pytest.mark.parametrize("kind", ["zip", "tar.gz", "folder"])
def test_what_is_read_apart_is_what_is_read_here(tmp_path, pristine, kind):
    source = pack(tmp_path, WORK | {"Makefile": b"other", "ü\udcff.txt": b"x"} if kind != "zip"
                  else WORK, kind)  # fmt: skip
    here = submission.load_submission(source, HOLES, pristine)
    assert load_contained(source, HOLES, pristine) == here
    assert here.taken == WORK


def test_one_process_reads_many_and_is_gone_afterwards(tmp_path, pristine):
    sources = [tar(tmp_path / f"work{n}", WORK) for n in range(20)]
    (tmp_path / "bad").write_bytes(b"no archive")
    with Reader() as reader:
        for source in sources:
            assert reader.load(source, HOLES, pristine).taken == WORK
            with pytest.raises(submission.SubmissionError, match="bad is not an archive; hint:"):
                reader.load(tmp_path / "bad", HOLES, pristine)
        pid = reader._process.pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_submission_that_takes_too_long_is_refused_and_the_next_is_read(
    tmp_path, pristine, limits
):
    limits("load = reader.load_submission\n"
           "def hang(source, *more):\n while source.name == 'slow': pass\n"
           " return load(source, *more)\n"
           "reader.load_submission = hang", seconds=0.3)  # fmt: skip
    with Reader() as reader:
        started = time.monotonic()
        with pytest.raises(submission.SubmissionError, match="slow takes more than 60 s of proc"):
            reader.load(zipped(tmp_path / "slow", WORK), HOLES, pristine)
        assert time.monotonic() - started < 20
        assert reader.load(zipped(tmp_path / "work", WORK), HOLES, pristine).taken == WORK


def test_a_submission_that_takes_too_much_memory_is_refused(tmp_path, pristine, limits):
    limits("def fill(source, *more):\n"
           " try: return bytearray(4 << 30)\n"
           " except MemoryError as error: archive.let_out(error)\n"
           "from grader.submission import archive\nreader.load_submission = fill")  # fmt: skip
    with pytest.raises(submission.SubmissionError, match="takes more than 1 GiB of memory to read"):
        load_contained(zipped(tmp_path / "work", WORK), HOLES, pristine)


@pytest.mark.parametrize("fault", ["raise OSError(24, 'Too many open files')", "os._exit(3)"])
def test_a_failure_of_the_machine_is_none_of_the_submission(tmp_path, pristine, limits, fault):
    limits(f"import os\ndef fail(*_): {fault}\nreader.load_submission = fail")
    with pytest.raises(OSError, match=r"Too many open files|ended by itself"):
        load_contained(zipped(tmp_path / "work", WORK), HOLES, pristine)
