"""Makes the pictures of the README: the page of a simulated class, and a student's page.

python tools/class_pictures.py            writes handout/class-page.png and student-page.png

Needs Chromium, and a font that has Chinese names (apt-get install chromium fonts-wqy-microhei).
"""

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

KIT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(KIT), str(KIT / "tests/support"), str(KIT / "tools")]

import catalogue
import readme_report
from browser import chromium
from grader.classroom.page import class_page, gather, write_student_pages
from grader.report.audience import student_view
from grader.report.html import to_html
from simulated import simulate

HANDOUT = catalogue.KIT / "handout"
LARGEST = 200_000  # bytes of a picture
SWITCH = 'id="failed-only"'


def photograph(page: Path, picture: Path, width: int, height: int) -> None:
    """Writes the top of a page as PNG.

    Raises:
        ValueError: it has more than LARGEST bytes.
    """
    with tempfile.TemporaryDirectory() as folder:
        chromium(Path(folder), f"--window-size={width},{height}", f"--screenshot={picture}",
                 page.as_uri())  # fmt: skip
    size = picture.stat().st_size
    if size > LARGEST:
        raise ValueError(f"{picture} has {size:,} bytes, more than {LARGEST:,}")
    print(f"{picture}: {width} x {height}, {size:,} bytes")


def class_picture(folder: Path) -> None:
    """Of 300 students who never were."""
    results = gather(simulate(folder / "results", 300, seed=1))
    write_student_pages(results)
    page = folder / "results" / "class.html"
    page.write_text(class_page(results, page), encoding="utf-8")
    photograph(page, HANDOUT / "class-page.png", 1100, 1130)


def student_picture(folder: Path) -> None:
    """Of the submission whose report the README quotes, its failed checks alone."""
    report = student_view(readme_report.shown())
    report = replace(report, submission="work.tar.gz")
    page = folder / "report.html"
    text = to_html(report).replace(SWITCH, f"{SWITCH} checked", 1)
    page.write_text(text, encoding="utf-8")
    photograph(page, HANDOUT / "student-page.png", 900, 1500)


def main() -> None:
    """Makes both."""
    with tempfile.TemporaryDirectory() as folder:
        class_picture(Path(folder))
        student_picture(Path(folder))


if __name__ == "__main__":
    main()
