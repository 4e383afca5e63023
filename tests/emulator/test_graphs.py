"""Graphs of the emulated GPU: what captures forbid, random graphs, what the checked build finds.

graphs.cu and cublas_graphs.cu say themselves whether they hold, see test_emulator.py.
"""

import shutil

import pytest

import checked
import kit as emulator_kit

# What a call does during a capture: its error, the capture's state, the error at its end.
SPOILT = "capture invalidated, end cudaErrorStreamCaptureInvalidated, no graph"
FINE = "capture active, end cudaSuccess, a graph"
UNSUPPORTED = "cudaErrorStreamCaptureUnsupported, " + SPOILT
IMPLICIT = "cudaErrorStreamCaptureImplicit, " + SPOILT
ERRORS = {
    "print_waits": {
        "stream synchronize": UNSUPPORTED,
        "stream query": UNSUPPORTED,
        "device synchronize": UNSUPPORTED,
        "event synchronize": "cudaErrorCapturedEvent, " + SPOILT,
        "event query": "cudaErrorCapturedEvent, " + SPOILT,
        "event query of another stream's": UNSUPPORTED,
        "event query of another stream's, relaxed": "cudaSuccess, " + FINE,
    },
    "print_modes": {
        "malloc, global": UNSUPPORTED,
        "malloc, thread-local": UNSUPPORTED,
        "malloc, relaxed": "cudaSuccess, " + FINE,
        "malloc elsewhere, global": UNSUPPORTED,
        "malloc elsewhere, thread-local": "cudaSuccess, " + FINE,
        "malloc in relaxed mode of the thread": "cudaSuccess, " + FINE,
        "memcpy that waits, global": "cudaSuccess, " + FINE,
    },
    "print_default_stream": {
        "kernel in the default stream, blocking": IMPLICIT,
        "kernel in the default stream, non-blocking": "cudaSuccess, " + FINE,
        "memcpy that waits, blocking": IMPLICIT,
        "memset in the default stream, blocking": IMPLICIT,
        "is the default stream capturing, blocking": "cudaErrorStreamCaptureImplicit, " + FINE,
        "capture of the default stream": "cudaErrorStreamCaptureUnsupported",
    },
    "print_forks": {
        "wait for an event from outside": "cudaErrorStreamCaptureIsolation, " + SPOILT,
        "work that is not joined": "cudaSuccess, capture active, "
        "end cudaErrorStreamCaptureUnjoined, no graph",
        "end in the wrong stream": "cudaErrorStreamCaptureUnmatched, " + SPOILT,
        "end on the wrong thread": "cudaErrorStreamCaptureWrongThread, capture none, "
        "end cudaErrorIllegalState, no graph",
        "begin twice": "cudaErrorIllegalState, " + FINE,
        "work after an error": "cudaErrorStreamCaptureInvalidated, " + SPOILT,
        "two captures in one": "cudaErrorStreamCaptureMerge, " + SPOILT,
        "end without a begin": "cudaErrorIllegalState",
    },
    "print_captured_events": {
        "time between captured events": "cudaSuccess, " + FINE,
        "query after the capture": "cudaErrorInvalidValue",
        "time after the capture": "cudaErrorInvalidValue",
        "query once it is recorded again": "cudaSuccess",
        "external record outside": "cudaErrorIllegalState",
    },
    "print_others": {
        "callback": UNSUPPORTED,
        "free of what was allocated outside": "cudaErrorInvalidValue, " + FINE,
        "launch of too many threads": "cudaErrorInvalidConfiguration, " + SPOILT,
    },
}


@pytest.mark.parametrize("case", ERRORS)
def test_what_a_capture_forbids_has_the_errors_of_a_gpu(kit, case):
    done = kit.run("capture_errors", case)
    assert done.returncode == 0, done.stderr
    told = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    assert told == ERRORS[case]


def test_each_call_of_a_capture_is_tried():
    source = (emulator_kit.PROGRAMS / "capture_errors.cu").read_text()
    assert all(f"CASE({case})" in source for case in ERRORS)
    assert source.count("CASE(") == len(ERRORS)


def test_a_picture_has_all_nodes_and_edges(kit, tmp_path):
    path = tmp_path / "graph.dot"
    done = kit.run("graphs", "a_graph_is_drawn", GRAPH_DOT=str(path))
    assert done.returncode == 0, done.stderr
    text = path.read_text()
    assert text.startswith("digraph") and text.count("\\nadd") == 2
    assert "node_0 -> node_1" in text


@pytest.mark.parametrize("shuffle", ["0", "1", "7"])
@pytest.mark.parametrize("loops", ["0", "1"])
def test_random_graphs_have_the_values_of_one_stream(kit, shuffle, loops):
    env = {"EMULATOR_SHUFFLE": shuffle, "EMULATOR_LOOPS": loops}
    done = kit.call(kit.folder / "random_graphs", "0", "120", env=env)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("streams right, graph right") == 120


class Random:
    """What the kit has to know of random_graphs.cu."""

    path, name, fixed = emulator_kit.PROGRAMS / "random_graphs.cu", "random_graphs", False


@pytest.fixture(scope="module")
def random_graphs(tmp_path_factory):
    """Runs random_graphs in the checked build; what it found, and what it printed."""
    made = checked.CheckedKit(tmp_path_factory.mktemp("graphs"))
    made.build_library()
    made.build_program(Random)

    def run(*words):
        path = made.folder / "findings"
        path.unlink(missing_ok=True)
        env = {"EMULATOR_FINDINGS": str(path)}
        done = made.call(made.folder / "random_graphs", *words, env=env)
        found = checked.checked_findings.read_report(str(path)) if path.exists() else []
        return {finding.kind for finding in found if not finding.is_advice}, done.stdout

    return run


def test_no_random_graph_is_accused(random_graphs):
    found, printed = random_graphs("0", "60")
    assert found == set()
    assert printed.count("streams right, graph right") == 60


def test_nodes_that_no_edge_orders_are_found(random_graphs, many):
    collided, count = 0, many(60, 15)
    for seed in range(count):
        found, printed = random_graphs(str(seed))
        assert found <= {"unordered nodes of a graph"}, seed
        if printed == "collides\n":
            collided += 1
            assert found, seed
    assert collided > count // 6


OWN_LAUNCH = """
#include <cuda_runtime.h>
int main() {
  emulator::CallData data = {};
  emulator::launch({"kernel", __FILE__, __LINE__}, {1, 1, 0, nullptr}, data);
}
"""


def test_a_launch_compiled_with_headers_of_another_version_does_not_link(kit, tmp_path):
    """A capture copies all that a launch's struct says; what another header lacks is garbage."""
    source = tmp_path / "launch.cc"
    source.write_text(OWN_LAUNCH)
    other = tmp_path / "other"
    shutil.copytree(emulator_kit.EMULATOR / "include", other)
    header = other / "emulator" / "launch.h"
    text, members = header.read_text(), "  size_t block_offset = 0, block_size = 0;\n"
    header.write_text(text.replace(members, members + "  size_t more = 0;\n"))
    rest = [source, "-o", tmp_path / "launch", kit.library, *kit.libraries]
    for include, links in ((emulator_kit.EMULATOR / "include", True), (other, False)):
        done = kit.call(*kit.cxx, "-std=c++17", "-I", include, *rest)
        assert (done.returncode == 0) is links, done.stderr
    assert members in text and "emulator::launch<" in done.stderr
