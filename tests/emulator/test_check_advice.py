"""The checked build gives advice where a GPU would be slow, and nowhere else."""

from pathlib import Path

import pytest

import checked


class Program:
    """What the kit has to know of advice.cu."""

    path = Path(__file__).resolve().parents[1] / "emulator" / "checked" / "advice.cu"
    name, fixed = "advice", False


@pytest.fixture(scope="module")
def kit(tmp_path_factory):
    kit = checked.CheckedKit(tmp_path_factory.mktemp("advice"))
    kit.build_library()
    kit.build_program(Program)
    return kit


@pytest.mark.parametrize(
    ("case", "kinds"),
    [
        ("some_lanes_read_neighbours", []),
        ("lanes_read_a_row_each", ["advice: uncoalesced access"]),
        ("the_largest_launch_is_fine", []),
        ("one_lane_reads_neighbours", []),
        ("all_lanes_read_neighbours", []),
    ],
)
def test_advice_is_given_where_a_gpu_is_slow(kit, case, kinds):
    path = kit.folder / "findings"
    path.unlink(missing_ok=True)
    done = kit.call(kit.folder / "advice", case, env={"EMULATOR_FINDINGS": str(path)})
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    found = checked.checked_findings.read_report(str(path)) if path.exists() else []
    assert [finding.kind for finding in found] == kinds
