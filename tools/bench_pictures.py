"""Makes the pictures of the README: the page of `grader bench`, and the notebook.

    python tools/bench_pictures.py [FILE.json ...]

writes docs/bench-page.png and docs/notebook.png. The page is that of the files, docs/bench/*.json
otherwise. Needs Chromium, and for the notebook .venv/bin/pip install nbconvert.
"""

import sys
import tempfile
from pathlib import Path

KIT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(KIT), str(KIT / "tests/support"), str(KIT / "tools")]

import nbformat
from nbclient import NotebookClient
from PIL import Image

from browser import chromium
from grader.bench import page

DOCS, NOTEBOOK = KIT / "docs", KIT / "handout/notebook/walk.ipynb"
LARGEST = 150_000  # bytes of a picture
#: Without ipywidgets pictures stand still, so that they are in the page.
PLAIN = "import sys\n\nsys.modules['ipywidgets'] = None\n"
#: What begins the cells that are shown: text, and what has so few lines behind it up to the next.
LINES = 16
SHOWN = ("## One derivative", "## A network")


def photograph(page_path: Path, picture: Path, width: int, height: int) -> None:
    """Writes the top of a page as PNG of 128 colours.

    Raises:
        ValueError: it has more than LARGEST bytes.
    """
    size, shot = f"--window-size={width},{height}", f"--screenshot={picture}"
    chromium(page_path.parent, size, shot, "--virtual-time-budget=5000", page_path.as_uri())
    Image.open(picture).convert("RGB").quantize(128).save(picture, optimize=True)
    count = picture.stat().st_size
    if count > LARGEST:
        raise ValueError(f"{picture} has {count:,} bytes, more than {LARGEST:,}")
    print(f"{picture}: {width} x {height}, {count:,} bytes")


def page_picture(files: list[Path], folder: Path) -> None:
    """Of the page of some measurements."""
    page.write(files, folder / "bench.html")
    photograph(folder / "bench.html", DOCS / "bench-page.png", 1100, 1180)


def executed() -> nbformat.NotebookNode:
    """The notebook with its outputs."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    first = next(cell for cell in notebook.cells if cell.cell_type == "code")
    first.source = PLAIN + first.source
    resources = {"metadata": {"path": str(NOTEBOOK.parent)}}
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources).execute()
    return notebook


def notebook_picture(folder: Path) -> None:
    """Of some cells of the notebook, as nbconvert shows them."""
    from nbconvert import HTMLExporter

    notebook, kept, is_shown = executed(), [], False
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            is_shown = cell.source.startswith(SHOWN)
        is_short = len(cell.source.splitlines()) <= LINES
        kept += [cell] if is_shown and is_short else []
    notebook.cells = kept
    text, _ = HTMLExporter().from_notebook_node(notebook)
    (folder / "notebook.html").write_text(text, encoding="utf-8")
    photograph(folder / "notebook.html", DOCS / "notebook.png", 900, 1330)


def main() -> None:
    """Makes both."""
    kept = sorted((DOCS / "bench").glob("*.json"), key=lambda path: path.stem == "emulated")
    files = [Path(each) for each in sys.argv[1:]] or kept  # real GPUs come first
    with tempfile.TemporaryDirectory() as folder:
        page_picture(files, Path(folder))
        notebook_picture(Path(folder))


if __name__ == "__main__":
    main()
