"""What a child wrote as findings is read strictly, and quotes nothing but the tree."""

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from grader.building import tree
from grader.explain import findings
from grader.explain.findings import Malformed, quote, quoted, read_entries, read_file, read_resolved
from grader.sandbox import process

SOURCES = {"src/gpu_op.cu": b"one\ntwo\nthree\nfour\nfive\nsix\n"}
ENTRY = {
    "kind": "race shared", "count": 3, "kernel": "k", "launch": None, "block": [8, 1, 1],
    "at": {"module": "/tmp/lib.so", "place": 12}, "block_index": [1, 0, 0],
    "thread_index": [2, 0, 0], "size": 4, "write": True,
    "other": {"at": {"module": "/tmp/lib.so", "place": 30}, "write": False},
    "memory": {"name": "tile", "space": "shared", "size": 64, "offset": -4}, "order": 1,
}  # fmt: skip
RESOLVED = {
    "kind": "race shared", "title": "Race", "kernel": "k", "block": [1, 0, 0], "thread": [],
    "at": ["src/gpu_op.cu", 3], "other": ["src/gpu_op.cu", 6], "sentence": "k races.",
    "cause": "No barrier.", "hint": "add one.", "count": 2,
}  # fmt: skip


def resolved(**changes):
    return json.dumps({"found": [{**RESOLVED, **changes}], "more": 0})


def test_an_entry_of_the_checked_build_is_read():
    (entry,), broken = read_entries(json.dumps(ENTRY) + "\n")
    assert broken == 0
    assert entry == {name: value for name, value in ENTRY.items() if value is not None}


@pytest.mark.parametrize(
    "line",
    [
        "no json", "[]", "3", "{}", '{"kind": 3}', '{"kind": ["x"]}',
        '{"kind": "leak", "count": "many"}', '{"kind": "leak", "count": 1e400}',
        '{"kind": "leak", "count": true}', '{"kind": "leak", "block_index": [1, 2]}',
        '{"kind": "leak", "at": "src/gpu_op.cu"}', '{"kind": "leak", "size": ' + "9" * 30 + "}",
        '{"kind": "leak", "other": {"at": {"at": {"at": {"at": {}}}}}}',
        "[" * 8000, '{"kind": "' + "x" * 9000 + '"}', '{"count": ' + "9" * 5000 + "}",
    ],
)  # fmt: skip
def test_what_is_no_entry_is_counted_and_left_out(line):
    entries, broken = read_entries(f"{line}\n{json.dumps(ENTRY)}\n")
    assert (len(entries), broken) == (1, 1)


def test_unknown_names_are_dropped_and_texts_made_plain():
    text = json.dumps({"kind": "leak\x1b[31m\nx", "evil": {"a": 1}, "detail": "y" * 900})
    (entry,), _ = read_entries(text)
    assert set(entry) == {"kind", "detail"}
    assert entry["kind"] == "leak[31m x"
    assert len(entry["detail"]) == 500


def test_no_more_than_so_much_is_read():
    entries, broken = read_entries((json.dumps(ENTRY) + "\n") * (findings.MAX_LINES + 7))
    assert (len(entries), broken) == (findings.MAX_LINES, 7)
    with tempfile.TemporaryFile() as file:
        file.truncate(findings.MAX_BYTES * 2)
        file.flush()
        assert len(read_file(file.fileno())) == findings.MAX_BYTES


def test_a_finding_quotes_its_lines():
    (found,), more = read_resolved(resolved(), SOURCES)
    assert more == 0
    assert found["source"] == ["     1 | one", "     2 | two", ">    3 | three", "     4 | four",
                               "     5 | five"]  # fmt: skip
    lines = found["text"].split("\n")
    assert lines[:2] == ["Race: src/gpu_op.cu:3", "k races."]
    assert lines[-4:] == ["the other access: src/gpu_op.cu:6", "  >    6 | six", "No barrier.",
                          "hint: add one."]  # fmt: skip


@pytest.mark.parametrize("at", [["/etc/passwd", 1], ["../x", 1], ["src/gpu_op.cu", 10**9],
                                ["src/gpu_op.cu", 0], ["src/gpu_op.cu", -3], None])  # fmt: skip
def test_no_file_but_the_trees_is_quoted(at):
    (found,), _ = read_resolved(resolved(at=at), SOURCES)
    assert found["source"] == []


def test_a_file_of_this_machine_is_told_by_its_name_alone():
    """As where no frame of a stack is the student's own."""
    at, other = ["/home/ta/.cache/kit/emulator/src/launch.cc", 31], ["../../kit/launch.h", 7]
    (found,), _ = read_resolved(resolved(at=at, other=other), SOURCES)
    assert (found["file"], found["other_file"]) == ("launch.cc", "launch.h")
    assert "launch.cc:31" in found["text"]
    assert "/" not in found["text"].replace("src/gpu_op.cu", "")


@pytest.mark.parametrize(
    "text",
    ["", "x", "[]", '{"found": 3, "more": 0}', '{"found": [3], "more": 0}', '{"found": []}',
     resolved(title=None), resolved(block=[1]), resolved(count="2"), resolved(at=["x"]),
     resolved(at=[3, "x"])],
)  # fmt: skip
def test_what_is_not_as_the_resolver_writes_it_is_refused(text):
    with pytest.raises(Malformed):
        read_resolved(text, SOURCES)


def test_a_quotation_is_plain():
    assert quote({"a": b"x\x1b[0m\xff\n"}, "a", 1) == [">    1 | x[0m�", "     2 |"]
    assert quoted(findings.finding(tool="t", kind="k", title="T", sentence="s"), {})["text"] == (
        "T\ns"
    )


def run_resolver(tmp_path, entries, library):
    """What checked_build.py says in a tree with the emulated GPU's programs."""
    shutil.copytree(tree.KIT / "emulator", tmp_path / "emulator")
    (tmp_path / "f.jsonl").write_text("".join(json.dumps(e) + "\n" for e in entries))
    resolver = Path(findings.__file__).with_name("checked_build.py")
    argv = [sys.executable, "-I", "-B", str(resolver), "emulator", "f.jsonl", str(library)]
    return process.run(argv, tmp_path)


def test_the_resolver_opens_no_file_that_a_child_names(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)  # whoever opens it waits
    entry = {**ENTRY, "at": {"module": str(pipe), "place": 5}, "other": None}
    done = run_resolver(tmp_path, [entry], tmp_path / "lib.so")
    (found,), _ = read_resolved(done.output, {})
    assert (found["file"], found["kernel"], found["thread"]) == ("", "k", [2, 0, 0])
    assert "`tile`" in found["sentence"]


def test_the_resolver_survives_a_library_that_is_none(tmp_path):
    library = tmp_path / "lib.so"
    library.write_bytes(b"\x7fELF" + b"\xff" * 200)
    done = run_resolver(tmp_path, [ENTRY], library)
    (found,), _ = read_resolved(done.output, {})
    assert (done.rc, found["file"], found["kernel"]) == (0, "", "k")


def test_advice_and_unknown_kinds_are_no_findings(tmp_path):
    kinds = ("advice: bank conflict", "made up")
    entries = [{**ENTRY, "kind": kind, "other": None} for kind in kinds]
    done = run_resolver(tmp_path, entries, tmp_path / "lib.so")
    assert read_resolved(done.output, {}) == ([], 0)
