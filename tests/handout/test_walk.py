"""The notebook that walks from one derivative to a network runs, with sliders and without."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

KIT = Path(__file__).resolve().parents[2]
NOTEBOOK = KIT / "handout" / "notebook" / "walk.ipynb"
#: Runs the cells without a kernel and without ipywidgets; prints what is displayed.
ALONE = """
import sys
sys.modules["ipywidgets"] = None
cells = %r
names = {"display": lambda shown: print("displayed", type(shown).__name__)}
for cell in cells:
    exec(cell, names)
"""


@pytest.fixture(scope="module")
def notebook():
    """As it is stored."""
    return nbformat.read(NOTEBOOK, as_version=4)


def code_of(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_the_notebook_is_stored_without_outputs(notebook):
    """They differ from machine to machine."""
    nbformat.validate(notebook)
    assert [(c.outputs, c.execution_count) for c in code_of(notebook) if c.outputs] == []
    assert NOTEBOOK.read_text() == nbformat.writes(notebook) + "\n"
    assert json.loads(NOTEBOOK.read_text())["nbformat"] == 4


def test_the_notebook_runs_in_jupyter_with_sliders(notebook, monkeypatch):
    monkeypatch.delenv("DLSYS_WHERE", raising=False)
    ran = nbformat.from_dict(notebook)
    resources = {"metadata": {"path": str(NOTEBOOK.parent)}}
    NotebookClient(ran, timeout=300, kernel_name="python3", resources=resources).execute()
    outputs = [output for cell in code_of(ran) for output in cell.outputs]
    said = "".join(output.get("text", "") for output in outputs)
    assert said.startswith("solution/ on ") and "at x = 1.5: 0.375 4.75\n" in said
    assert re.search(r"on gpu: loss 0\.\d+ became 0\.0\d+, right (100|9\d)%", said), said
    kinds = [kind for output in outputs for kind in output.get("data", {})]
    assert kinds.count("application/vnd.jupyter.widget-view+json") == 4
    assert kinds.count("image/svg+xml") == 5


@pytest.mark.parametrize("where, pictures", [("numpy", 7), ("cpu", 9)])
def test_the_notebook_runs_on_other_back_ends_with_pictures_that_stand_still(
    where, pictures, notebook
):
    text = ALONE % [cell.source for cell in code_of(notebook)]
    done = subprocess.run(
        [sys.executable, "-"], input=text, capture_output=True, text=True, cwd=NOTEBOOK.parent,
        env={**os.environ, "DLSYS_WHERE": where},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("displayed Svg\n") == pictures
    assert f"on {where}: loss " in done.stdout
    assert re.search(r"9\d\.\d% of 297 digits", done.stdout), done.stdout


def test_the_losses_of_all_back_ends_agree(notebook):
    """The cell that trains on each of them, with those before it."""
    cells = [cell.source for cell in code_of(notebook)]
    last = next(i for i, source in enumerate(cells) if "def fitted" in source)
    wanted = [0, 1, 2, *(i for i in range(3, last + 1) if "target" in cells[i])]
    text = ALONE % [cells[i] for i in wanted]
    done = subprocess.run([sys.executable, "-"], input=text, capture_output=True, text=True,
                          cwd=NOTEBOOK.parent)  # fmt: skip
    assert done.returncode == 0, done.stderr
    off = [float(each) for each in re.findall(r"off numpy's by (\S+)", done.stdout)]
    assert len(off) == 3 and max(off) < 1e-6
