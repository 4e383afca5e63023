"""The recipes of CONTRIBUTING.md, followed on a copy."""

import json
import os
import subprocess
import sys

from grader.building.tree import KIT, copy_files, tree_files

CHECK = '''
@check(device=False)
def sums_have_two_inputs(ctx: Context) -> None:
    """x + y keeps both of its inputs"""
    with ctx.session() as session:
        total = session.variable("x") + session.variable("y")
        if session.remote.len(total.inputs) != 2:
            raise Failure("x + y has not two inputs")


'''
ROW = """
[[check]]
name = "sums_have_two_inputs"
task = "1.2"
points = 3
seconds = 20
"""


def test_a_check_takes_two_files(tmp_path):
    for name in ("grader", "emulator", "assignment", "solution"):
        copy_files({path: KIT / name / path for path in tree_files(KIT / name)}, tmp_path / name)
    (tmp_path / "course.toml").write_bytes((KIT / "course.toml").read_bytes())
    module, rubric = (
        tmp_path / "grader" / name
        for name in ("checks/gradients.py", "course/rubrics/default.toml")
    )
    text = module.read_text()
    assert text.count("CHECKS = declared(globals())") == 1
    module.write_text(text.replace("CHECKS = declared", f"{CHECK.lstrip()}CHECKS = declared"))
    before = "# Seconds for explaining failures of kernels"
    assert rubric.read_text().count(before) == 1
    rubric.write_text(rubric.read_text().replace(before, f"{ROW}\n{before}"))
    command = [
        sys.executable,
        "-m",
        "grader",
        "grade",
        "solution",
        "--only",
        "sums_have_two_inputs",
    ]
    done = subprocess.run(
        [*command, "--device", "emulated", "--json", "report.json"], cwd=tmp_path, text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    found = {result["check"]: result for result in report["results"]}
    assert found["sums_have_two_inputs"]["score"] == 3
