"""Kernels that were once computed wrongly in their fast form: it must compute what threads do.

The programs are in tests/emulator/holes/. Each case prints what it computed, thread by thread
(EMULATOR_LOOPS=0) and in the fast form, on one CPU thread and on two.
"""

import re

import pytest

import kit as emulator_kit
from shares import share

HOLES = emulator_kit.PROGRAMS / "holes"
CASES = [
    (source.stem, case)
    for source in sorted(HOLES.glob("*.cu"))
    for case in re.findall(r"^CASE\((\w+)\)", source.read_text(), re.M)
]


@pytest.mark.parametrize("hole", share(CASES, 2, lambda hole: hole[0]), ids="-".join)
def test_a_hole(kit, hole):
    """The fast form prints what threads one by one print."""
    program, case = hole
    kit.build_once(HOLES / f"{program}.cu")
    expected = kit.run(program, case, EMULATOR_LOOPS="0")
    assert expected.returncode == 0, expected.stderr
    assert expected.stdout.strip()
    for threads in ("1", "2"):
        found = kit.run(program, case, EMULATOR_THREADS=threads)
        assert found.returncode == 0, found.stderr
        assert found.stdout == expected.stdout
