"""Makes typical mistakes in a student's folder, and writes what the student is told.

    python3 tools/mistakes.py [NAME ...]    writes handout/mistakes.md, or prints those named

A mistake is a submission of tests/submissions/. It is told twice: by `make` and `make status`, as
here, and by the grader, whose words are those of handout/catalogue.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

KIT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(KIT), str(KIT / "tests/support"), str(KIT / "tools")]

import catalogue
from built_trees import build_as
from grader.course.course import kit_course, rubric_of
from grader.release.front_matter import cover_of
from grader.release.holes import release

TABLE = KIT / "handout" / "mistakes.md"
GRADED = catalogue.FOLDER / "emulated.json"
#: What a first user did wrong, and what most do.
NAMES = (
    "topo_outputs_first", "topo_duplicates", "topo_recursive",
    "add_without_unbroadcast", "multiply_gradient_swapped", "matmul_gradient_not_transposed",
    "gradient_not_returned", "broadcast_gradient_for_one_input", "cross_entropy_gradient_of_one",
    "cross_entropy_gradient_of_a_sum", "gradients_overwrite", "relu_gradient_in_place",
    "matmul_shape_ignores_transpose", "matmul_shape_unchecked",
    "plan_product_over_its_input", "plan_lends_results", "plan_without_sharing",
    "feeds_other_shapes_on_the_old_plan", "does_not_compile", "array_set_of_no_elements",
    "block_of_1025_threads", "broadcast_to_rounds_down", "add_no_guard",
    "reduce_sum_adds_to_the_output", "reduce_sum_no_barrier", "matmul_ignores_transpose",
    "relu_drops_nan", "relu_never_ends", "softmax_overflows",
)  # fmt: skip
LONGEST = 170  # characters of words in the table

INTRODUCTION = """# Typical mistakes, and what is said of them

{count} mistakes, each made in a student's folder that is right otherwise. On the left what
`make && make status` says there, after so many seconds; on the right what the grader says. All of
it was printed, by `python3 tools/mistakes.py`.

| mistake | task | in the student's folder | seconds | by the grader |
| --- | --- | --- | --- | --- |
"""


@dataclass(frozen=True)
class Told:
    """What a student is told of a mistake.

    Attributes:
        task: that is failing.
        words: the first line, and what else says where it is or what to try.
        text: all of it.
        seconds: from the edit to these words.
    """

    task: str
    words: str
    text: str
    seconds: float


def student_folder(folder: Path) -> Path:
    """A release in a new folder, built, whose holes are filled with the solution.

    Raises:
        subprocess.CalledProcessError: it does not build.
    """
    course = kit_course()
    release(course.solution, folder, course.parts, None, cover_of(course, rubric_of(course)))
    for name in catalogue.FILES:
        shutil.copy(course.solution / name, folder / name)
    build_as(folder)
    command = ["make", "-s", "DEVICE=emulated", f"PYTHON={sys.executable}"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder


def make(mutant: catalogue.Mutant, folder: Path) -> Told:
    """Makes a mistake in such a folder, and asks for the state of its task.

    Raises:
        ValueError: nothing is wrong there.
    """
    catalogue.write(mutant, folder)
    env = {**os.environ, "EMULATOR_LAUNCH_SECONDS": "5"}
    started = time.monotonic()

    def run(*command: str) -> str:
        done = subprocess.run(
            command, cwd=folder, env=env, capture_output=True, text=True, timeout=300
        )
        return done.stdout + done.stderr

    built = run("make", "DEVICE=emulated", f"PYTHON={sys.executable}")
    if " error: " in built:
        text = built[built.rindex("\n", 0, built.index(" error: ")) + 1 :]
        return Told("", text.partition("\n")[0], text, time.monotonic() - started)
    run(sys.executable, "-m", "grader.status", mutant.check, "--json", "found.json")
    seconds = time.monotonic() - started
    found = json.loads((folder / "found.json").read_text())
    wrong = [one for one in found if one["check"] == mutant.check and one["status"] == "fail"]
    if not wrong:
        raise ValueError(f"{mutant.name}: {found}")
    message, hint, details = (wrong[0][key] for key in ("message", "hint", "details"))
    place = next((line.strip() for line in details if ".cu:" in line or ".py:" in line), "")
    text = "\n".join([message, hint, *details])
    rows = {row.name: row.task for row in rubric_of(kit_course()).rows}
    words = "; ".join(filter(None, (_short(message), hint or place)))
    return Told(rows[mutant.check], words, text, seconds)


def mistakes() -> list[catalogue.Mutant]:
    """Those of NAMES, in their order."""
    known = {mutant.name: mutant for mutant in catalogue.mutants()}
    return [known[name] for name in NAMES]


def table(told: dict[str, Told]) -> str:
    """The page."""
    graded = json.loads(GRADED.read_text())
    lines = []
    for mutant in mistakes():
        one = told[mutant.name]
        cells = [f"{mutant.title} (`{mutant.name}`)", one.task or "–", one.words]
        cells += [f"{one.seconds:.0f}", _short(graded[mutant.name]["message"])]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n")
    return INTRODUCTION.format(count=len(NAMES)) + "".join(lines)


def _short(words: str) -> str:
    return words if len(words) <= LONGEST else words[: LONGEST - 1] + "…"


def main() -> int:
    """Shows the mistakes that the command line names, or writes the table of all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[[], *NAMES], metavar="NAME")
    names = parser.parse_args().names
    told = {}
    with tempfile.TemporaryDirectory() as scratch:
        built = student_folder(Path(scratch) / "built")
        for mutant in mistakes():
            if names and mutant.name not in names:
                continue
            work = shutil.copytree(built, Path(scratch) / mutant.name, symlinks=True)
            told[mutant.name] = make(mutant, work)
            print(f"{mutant.name}: {json.dumps(dataclasses.asdict(told[mutant.name]), indent=1)}")
            shutil.rmtree(work)
    if not names:
        TABLE.write_text(table(told))
    return 0


if __name__ == "__main__":
    sys.exit(main())
