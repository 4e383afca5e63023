"""The students' notebook runs, from the archive to the packed work."""

import re
import subprocess
import sys
import tarfile
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

import mistakes

NOTEBOOK = Path(__file__).resolve().parents[2] / "solution" / "notebook.ipynb"


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """What each cell of code printed, beside an archive of work that is done."""
    folder = tmp_path_factory.mktemp("notebook")
    work = mistakes.student_folder(folder / "made" / "assignment")
    subprocess.run(
        ["make", "-s", "clean", f"PYTHON={sys.executable}"],
        cwd=work,
        check=True,
        capture_output=True,
    )
    with tarfile.open(folder / "assignment.tar.gz", "w:gz") as archive:
        archive.add(work, "assignment")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    NotebookClient(
        notebook, timeout=300, kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
    ).execute()  # fmt: skip
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    said = ["".join(each.get("text", "") for each in cell.outputs) for cell in cells]
    return [re.sub(r"\x1b\[[0-9;]*[mK]", "", text) for text in said]


def test_the_notebook_builds_and_shows_the_state(ran):
    assert "built build/lib/" in ran[1] and ran[1].count(" done") == 19, ran[1]
    assert "1.1" in ran[2] and ran[2].count(" done") == 1
    assert ran[3].startswith("(((x*y)+3)*x) has the gradients [")


def test_the_notebook_packs_the_work(ran):
    assert "hand in this file" in ran[4], ran[4]
