"""The reports of the checked build: words for every kind, merging, exit codes, JSON."""

import json
import re
from pathlib import Path

import pytest

import kit
import report
from findings import candidates
from findings.kinds import CANDIDATES, TABLE, WORDS
from findings.source_lines import Place

SOURCE = """\
#include <cuda_runtime.h>

__global__ void add(int n, const float *a, float *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = a[i] + 1;
  out[0] = 2;
}

void run(int n, float *a, float *out) {
  add<<<4, 256>>>(n, a, out);
  cudaFree(a);
}
"""
# Without a place of their own, or without a kernel.
HOST_KINDS = (
    "device pointer on host",
    "copy past the end",
    "copy in the wrong direction",
    "unwritten result",
    "double free",
    "leak",
    "cublas handle leaked",
    "call error unread",
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working directory, with a source."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "add.cu").write_text(SOURCE)
    return tmp_path


def site(line, file="add.cu"):
    return {"file": file, "line": line}


def finding(kind="out-of-bounds write global", **values):
    """What the runtime writes."""
    entry = {
        "kind": kind,
        "count": 4096,
        "kernel": None if kind in HOST_KINDS else "add",
        "launch": site(10),
        "grid": [4, 1, 1],
        "block": [256, 1, 1],
        "at": site(5),
        "block_index": [3, 0, 0],
        "thread_index": [17, 0, 0],
        "size": 4,
        "write": "read" not in kind,
        "other": None,
        "memory": memory(),
        "detail": None,
        "order": 1,
    }
    if kind in HOST_KINDS:
        entry.update(launch=None, grid=None, block=None, block_index=None, thread_index=None)
    if kind == "call error unread":
        entry.update(at=site(11), detail="cudaFree: invalid argument")
    between_two = ("unsynchronised access", "unwritten result", "unordered nodes of a graph")
    if "race" in kind or "barrier" in kind or kind in between_two:
        entry["other"] = other(6)
    return {**entry, **values}


def memory(**values):
    entry = {"name": "out", "space": "global", "size": 4000, "offset": 4000}
    return {**entry, "allocated": site(9), "freed": None, **values}


def other(line, **values):
    entry = {"at": site(line), "write": False, "block_index": [0, 0, 0], "thread_index": [1, 0, 0]}
    return {**entry, **values}


def trace(**values):
    entry = {"trace": True, "at": site(5), "write": True, "size": 4, "memory": memory(offset=20)}
    return {**entry, "value": "0000c03f", **values}


def written(*entries):
    """A file of findings."""
    path = Path("found.jsonl")
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return str(path)


def read(*entries):
    return report.read_report(written(*entries))


def text(*entries, **options):
    return report.render(read(*entries), **options)


# --- words ---------------------------------------------------------------------------------------


def test_every_kind_has_words_and_is_found_somewhere_in_the_runtime():
    runtime = "".join(path.read_text() for path in (kit.EMULATOR / "src").rglob("*.cc"))
    rows = re.findall(r'^(?:KIND|CANDIDATE)\((\w+), "(.*?)"', Path(TABLE).read_text(), re.M)
    assert [kind for _, kind in rows] == [*CANDIDATES, *WORDS]
    assert [name for name, _ in rows if not re.search(rf"Kind::{name}\b", runtime)] == []
    assert not set(CANDIDATES) & set(WORDS) and set(CANDIDATES.values()) <= {*WORDS, None}
    for words in WORDS.values():
        assert words.title and words.cause.endswith(".") and words.hint.endswith((".", "?"))


@pytest.mark.parametrize("kind", WORDS)
def test_every_kind_makes_a_whole_report(folder, kind):
    said = text(finding(kind))
    words, of_call = WORDS[kind], kind == "call error unread"
    assert f"1. {words.title}: add.cu:{11 if of_call else 5}\n" in said
    assert words.cause in said and f"hint: {words.hint}" in said
    assert ">   11 |   cudaFree(a);" in said or ">    5 |   out[i] = a[i] + 1;" in said
    assert ("and 4,095 more threads or times" in said) == (not kind.startswith("advice"))
    assert ("kernel add" in said) == (kind not in HOST_KINDS)
    assert "None" not in said and not re.search(r"{[a-z]", said)


@pytest.mark.parametrize("kind", WORDS)
def test_every_kind_does_with_nothing_known(folder, kind):
    bare = {"kind": kind, "count": 1, "kernel": None, "at": None, "order": 0}
    if kind == "barrier not reached":
        bare |= {"at": site(5), "other": {"at": site(6)}}
    if kind == "different barriers":
        bare |= {"other": {"at": site(6)}}
    if kind == "call error unread":  # dropped without its line
        bare |= {"at": site(11), "detail": "cudaFree"}
    said = text(bare)
    assert WORDS[kind].title in said and "None" not in said
    assert "or times" not in said


def test_an_overrun_is_told_with_its_values(folder):
    said = text(finding())
    assert (
        "kernel add, block (3, 0, 0), thread (17, 0, 0) writes 4 bytes at `out`[1000], "
        "0 bytes past its end: `out` has 4,000 bytes (1,000 of 4 bytes)." in said
    )
    assert "launched at add.cu:10 with grid (4, 1, 1), block (256, 1, 1)" in said
    assert "`out` was allocated at add.cu:9" in said


def test_the_distance_has_a_side(folder):
    assert "`out`[-2], 8 bytes before its start" in text(finding(memory=memory(offset=-8)))
    said = text(finding(memory=memory(offset=3992), size=16))
    assert "writes 16 bytes at byte 3992 of `out`, 8 of them past its end" in said
    assert "a buffer of 4,000 bytes in global memory" in text(finding(memory=memory(name=None)))


def test_both_places_of_a_race_are_quoted(folder):
    said = text(finding("race global", memory=memory(offset=0)))
    assert (
        "thread (17, 0, 0) writes 4 bytes at `out`[0], and block (0, 0, 0), thread (1, 0, 0)"
        " reads it; nothing says which comes first" in said
    )
    assert "the other access, by block (0, 0, 0), thread (1, 0, 0), at add.cu:6" in said
    assert ">    5 |   out[i] = a[i] + 1;" in said and ">    6 |   out[0] = 2;" in said


def test_a_line_that_races_with_itself_is_quoted_once(folder):
    said = text(finding("race shared", other=other(5)))
    assert "by block (0, 0, 0), thread (1, 0, 0), at the same line" in said
    assert said.count(">    5 |") == 1


def test_the_thread_that_passed_a_barrier_is_followed(folder):
    said = text(finding("barrier not reached", memory=None))
    assert "waits at a barrier that another thread of its block went past." in said
    assert "block (0, 0, 0), thread (1, 0, 0) went on to add.cu:6" in said
    said = text(finding("barrier not reached", other=None, detail="no thread can go on"))
    assert "that other threads of its block never reach (no thread can go on)." in said


def test_the_calls_that_led_to_a_line_are_told(folder):
    said = text(finding(calls=[site(5), site(10)], launch=site(12)))
    assert "called at add.cu:5" not in said  # calls are places in the program's code
    (found,) = read(finding(launch=site(12)))
    found.calls = [Place("add.cu", 4), Place("add.cu", 6)]
    said = report.render([found])
    assert "\n   called at add.cu:4\n   called at add.cu:6 in kernel add\n" in said


def test_a_result_that_nobody_wrote_names_the_copy_and_the_read(folder):
    said = text(finding("unwritten result", memory=memory(name=None, offset=3600)))
    assert "1. Result that no kernel wrote: add.cu:5\n" in said
    assert "the host reads byte 3600 of a buffer of 4,000 bytes in global memory" in said
    assert "the host reads it at add.cu:6" in said


def test_cublas_is_no_kernel(folder):
    said = text(finding("out-of-bounds read global", kernel="cublasSgemm_v2", size=4800, at=None,
                        memory=memory(offset=0), block_index=None, thread_index=None))  # fmt: skip
    assert "cublasSgemm_v2 reads 4,800 bytes at byte 0 of `out`, 800 of them past its end" in said
    assert "kernel cublas" not in said


def test_misaligned_and_null_addresses(folder):
    said = text(finding("misaligned access global", size=16, memory=memory(offset=4)))
    assert "writes 16 bytes at byte 4 of `out`, which 16 does not divide." in said
    said = text(finding("host pointer in kernel", memory=None, detail="the address is null"))
    assert "at an address of no known buffer (the address is null)." in said
    said = text(finding("row overrun", size=0, detail="index 35"))
    assert "uses an index that its dimension does not have (index 35)." in said
    assert "allocated" not in said
    unknown = memory(name=None, space="host", size=0, allocated=None)
    said = text(finding("host pointer in kernel", memory=unknown))
    assert "writes 4 bytes at an address in host memory." in said


def test_what_is_known_already_is_not_told_again(folder):
    said = text(finding("leak", at=site(9), memory=memory(name=None)))
    assert "a buffer of 4,000 bytes in global memory was never freed." in said
    assert "was allocated" not in said
    said = text(finding(memory=memory(name=None), launch=None))
    assert "the buffer was allocated at add.cu:9" in said and "launched" not in said


def test_copies_name_their_sizes(folder):
    said = text(finding("copy past the end", size=1600, memory=memory(size=400, offset=0)))
    assert "a copy or fill of 1,600 bytes goes past the end of `out` (400 bytes)." in said
    said = text(finding("copy past the end", size=8, memory=memory(name=None, offset=3996)))
    assert "past the end of a buffer of 4,000 bytes in global memory, from its byte 3996." in said
    assert "`out` (4,000 bytes) was never freed." in text(finding("leak"))
    assert "the launch of kernel add failed" in text(finding("launch error unread"))


def test_freed_memory_names_both_places(folder):
    said = text(finding("use after free", memory=memory(freed=site(11))))
    assert "was allocated at add.cu:9" in said and "was freed at add.cu:11" in said


def test_a_quoted_line_has_two_neighbours_on_each_side(folder):
    lines = [line for line in text(finding()).splitlines() if " | " in line or line.endswith(" |")]
    assert [line.split("|")[0].split()[-1] for line in lines] == ["3", "4", "5", "6", "7"]
    assert [line.lstrip().startswith(">") for line in lines] == [False, False, True, False, False]


def test_a_missing_source_is_not_quoted(folder):
    said = text(finding(at=site(5, "gone.cu")))
    assert "gone.cu:5" in said and " | " not in said


def test_details_are_told(folder):
    said = text(finding("advice: bank conflict", detail="32 ways, 128 times"))
    assert "(32 ways, 128 times)" in said


def test_advice_stands_behind_the_findings_and_does_not_count(folder):
    said = text(finding("advice: bank conflict"), finding(order=2))
    assert said.index("Write outside") < said.index("Advice:") < said.index("Bank conflict")
    assert said.endswith("1 finding: 1 out-of-bounds write global\n")
    assert text(finding("advice: bank conflict")).endswith("but there is advice.\n")
    assert text() == "Nothing wrong was found.\n"


def test_advice_of_one_kind_stands_once_a_kernel(folder):
    one, kind = "advice: uncoalesced access", "advice: bank conflict"
    said = text(*[finding(one, at=site(line)) for line in (3, 5, 7)], finding(kind, at=site(7)))
    assert said.count("hint:") == 2 and "the same at add.cu:5, add.cu:7\n" in said


def test_a_program_that_was_stopped_is_never_without_fault(folder):
    ended = "./a was ended by signal 9 (SIGKILL)"
    unknown = "what would have come after that is unknown"
    assert text(ended=ended) == f"No finding, but {ended}: {unknown}.\n"
    assert f"1 leak; {ended}, and {unknown}\n" in text(finding("leak"), ended=ended)
    assert "Nothing wrong" not in text(finding("advice: low occupancy"), ended=ended)


def test_many_findings_are_folded(folder):
    entries = [finding(at=site(line)) for line in range(1, 31)]
    said = text(*entries)
    assert "20. " in said and "21. " not in said and "10 more; hint: --all shows them" in said
    assert "30. " in text(*entries, show_all=True)
    assert said.endswith("30 findings: 30 out-of-bounds write global\n")


# --- merging and dropping ------------------------------------------------------------------------


def test_findings_of_one_line_are_merged(folder):
    found = read(finding(count=2, order=5, size=8), finding(count=3, order=4))
    assert [(one.count, one.size) for one in found] == [(5, 4)]


def test_what_was_found_since_is_added_and_the_first_thread_named(folder):
    later = finding(count=30, block_index=[1, 0, 0], thread_index=[40, 0, 0])
    (found,) = read(finding(count=1), later, finding(count=2, block_index=[2, 0, 0]))
    assert (found.count, found.block_index, found.thread_index) == (33, (1, 0, 0), (40, 0, 0))


def test_what_was_taken_back_is_no_finding(folder):
    kind = "launch error unread"
    assert read(finding(kind, count=1), finding(kind, count=-1)) == []
    lines = [finding(kind, count=count) for count in (1, -1, 1, 1, -1)]
    assert [found.count for found in read(*lines)] == [1]


def test_errors_of_two_calls_of_a_line_are_two(folder):
    kind = "call error unread"
    Path("add.cu").write_text("\n" * 10 + "{ cudaFree(a); cudaMemset(a, 0, 4); }")
    other = finding(kind, detail="cudaMemset: invalid argument")
    assert len(read(finding(kind), other, finding(kind))) == 2


@pytest.mark.parametrize("line", ["check(cudaFree(a));", "error = cudaFree(a);", "// cudaFree(a);"])
def test_an_error_that_was_perhaps_looked_at_is_dropped(folder, line):
    Path("add.cu").write_text("\n" * 10 + line)
    assert read(finding("call error unread")) == []
    assert read(finding("call error unread", at=site(11, "gone.cu"))) == []


@pytest.mark.parametrize(
    "change",
    [{"kind": "use after free"}, {"kernel": "b"}, {"at": site(6)}, {"other": other(6)}],
)
def test_findings_that_differ_are_not_merged(folder, change):
    assert len(read(finding(), finding(**change))) == 2


def test_a_race_told_both_ways_round_is_one(folder):
    (race,) = read(finding("race global"), finding("race global", at=site(6), other=other(5)))
    assert (race.at.line, race.other.at.line, race.count) == (5, 6, 8192)


def test_leaks_of_different_lines_are_not_merged(folder):
    leaks = [finding("leak", at=None, memory=memory(allocated=site(line))) for line in (8, 9, 9)]
    assert [leak.count for leak in read(*leaks)] == [4096, 8192]


def test_one_barrier_in_two_places_of_the_code_is_dropped(folder):
    assert read(finding("different barriers", other=other(5))) == []
    assert len(read(finding("different barriers", other=other(6)))) == 1


def test_a_thread_that_ended_before_the_barrier_is_dropped(folder):
    kind = "barrier not reached"
    assert len(read(finding(kind, other=other(6)))) == 1
    for harmless in (other(5), other(4), other(9, at=site(9, "b.cu")), other(1, at=None)):
        assert read(finding(kind, other=harmless)) == []


def test_a_thread_at_the_last_brace_went_round_the_barrier(folder):
    (found,) = read(finding("barrier passed by", other=other(5)))
    assert found.kind == "barrier not reached"


def test_a_read_before_an_atomic_is_a_race_unless_an_atomic_follows_somewhere(folder):
    (found,) = read(finding("plain read shared", other=other(6)))
    assert found.kind == "race shared"
    assert read(finding("plain read shared", other=other(6)), finding("atomic behind a read")) == []
    elsewhere = finding("atomic behind a read", at=site(4))
    assert len(read(finding("plain read global", other=other(6)), elsewhere)) == 1


SHUFFLE = "other = __shfl_down_sync(mask, f(value), step);"


@pytest.mark.parametrize(
    "used, is_discarded",
    [
        ("if (lane + step < lanes) value += other;", True),
        ("if (lane + step < (lanes)) value += other;", True),
        ("value += lane + step < lanes ? other : 0;", True),
        ("value += other;", False),
        ("if (other > value) value = other;", False),
        ("if (f(value) < f(other)) value = other;", False),
        ("value = value > other ? value : other;", False),
    ],
)
def test_a_shuffled_value_may_be_discarded(folder, used, is_discarded):
    candidates.read_source.cache_clear()
    for between in ("\n", " "):
        Path("warp.cu").write_text(f"{{\n  int {SHUFFLE}{between}{used}\n}}\n")
        candidates.read_source.cache_clear()
        found = read(finding("shuffle from an absent lane", at=site(2, "warp.cu")))
        assert (found == []) == is_discarded


def test_a_shuffled_value_in_an_expression_is_used(folder):
    for statement in ("value += " + SHUFFLE[8:], f"value = max(value, {SHUFFLE[8:-1]});"):
        Path("warp.cu").write_text(statement + " if (lane + 1 < lanes) value += other;")
        candidates.read_source.cache_clear()
        assert len(read(finding("shuffle from an absent lane", at=site(1, "warp.cu")))) == 1


def test_findings_come_in_the_order_they_happened(folder):
    found = read(finding(order=2), finding("leak", order=1))
    assert [one.kind for one in found] == ["leak", "out-of-bounds write global"]


# --- traces --------------------------------------------------------------------------------------


def test_a_trace_is_a_line_each(folder, capsys):
    path = written(trace(), trace(write=False, value=None), finding())
    assert report.main([path]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "add.cu:5: writes `out`[5] = 1.5 or 1069547520"
    assert lines[1] == "add.cu:5: reads `out`[5] is unknown"


def test_lines_that_only_a_package_could_name_bring_a_hint(folder, monkeypatch, capsys):
    monkeypatch.setattr("findings.source_lines.ELFFile", None)
    monkeypatch.setattr("shutil.which", lambda name: None)
    unknown = written(finding(at={"module": "a.so", "place": 16}))
    report.main([unknown])
    assert "hint: python3 -m pip install pyelftools" in capsys.readouterr().out
    report.main([written(finding())])
    assert "pyelftools" not in capsys.readouterr().out


def test_a_traced_vector_has_its_words(folder, capsys):
    report.main([written(trace(size=8, value="000000000000f03f"))])
    report.main([written(trace(size=16, value="0000803f" * 4))])
    said = capsys.readouterr().out
    assert "1 or 4607182418800017408" in said and said.count("1 or 1065353216") == 4


# --- the command ---------------------------------------------------------------------------------


def test_exit_codes(folder, capsys):
    assert report.main([written()]) == 0
    assert report.main([written(finding("advice: low occupancy"))]) == 0
    assert report.main([written(finding())]) == 1
    for arguments, code in (([], 2), (["gone.jsonl"], 3), (["--help"], 0)):
        with pytest.raises(SystemExit) as ended:
            report.main(arguments)
        assert ended.value.code == code
    assert "EMULATOR_FINDINGS=" in capsys.readouterr().out


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "3",
        '{"kind": "x"}',
        json.dumps(finding(memory=3)),
        json.dumps(finding(at={"module": 1})),
        json.dumps(finding(at=[1])),
        json.dumps(trace(value="xy")),
    ],
)
def test_broken_input_is_named_with_its_line(folder, capsys, line):
    Path("found.jsonl").write_text(json.dumps(finding()) + "\n" + line + "\n")
    with pytest.raises(SystemExit) as ended:
        report.main(["found.jsonl"])
    assert ended.value.code == 3
    assert "found.jsonl:2: " in capsys.readouterr().err


def test_json_for_programs(folder, capsys):
    assert report.main(["--json", written(finding("race global"))]) == 1
    (entry,) = json.loads(capsys.readouterr().out)
    assert "thread (17, 0, 0) writes" in entry.pop("text")
    assert entry == {
        "kind": "race global",
        "kernel": "add",
        "file": "add.cu",
        "line": 5,
        "other_line": 6,
        "count": 4096,
        "title": "Race in global memory",
    }


def test_a_module_without_debug_information_has_no_places(folder):
    (folder / "no.so").write_bytes(b"not ELF")
    unknown = {"module": str(folder / "no.so"), "place": 16}
    said = text(finding(at=unknown), finding(at={**unknown, "place": 32}))
    assert said.count("place unknown") == 4 and "2 findings" in said
