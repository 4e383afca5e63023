"""The site that `make docs` builds: its pages, its index for the search, and its links."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from browser import needs_chromium, visit

KIT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(KIT / "docs"))
pytest.importorskip("sphinx")

import make_site  # noqa: E402

from import_graph import ImportGraph  # noqa: E402


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the pages."""
    folder = tmp_path_factory.mktemp("docs")
    command = [sys.executable, str(KIT / "docs/make_site.py"), "--output", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "html"


def words(page):
    """The text of a page."""
    return " ".join(re.sub(r"<[^>]*>", "", page.read_text()).split())


def test_the_key_pages_are_there(site):
    for folder in ("chapters", "guide", "steps", "nets"):
        for path in (KIT / "handout" / folder).glob("*.md.j2"):
            kind = "handout" if folder == "chapters" else folder
            assert (site / kind / path.name.replace(".md.j2", ".html")).is_file()
    pages = ("index", "suite", "catalogue", "mistakes", "reports", "results", "passes")
    for name in (*pages, "findings/index", "search"):
        assert (site / f"{name}.html").is_file(), name
    assert "dlsys.autodiff.gradients" in (site / "api.html").read_text()
    assert "matrix_multiply" in words(site / "api.html")


def test_every_kind_of_finding_has_a_page_with_its_words(site):
    """Of the table in emulator/src/checked/kinds.h."""
    assert len(make_site.WORDS) >= 35
    for kind, said in make_site.WORDS.items():
        page = words(site / f"findings/{make_site.slug(kind)}.html")
        for text in (said.title, kind, said.hint.partition("`")[0].strip()):
            assert text in page.replace("’", "'"), kind


def test_the_page_about_rooms_draws_every_room_of_the_grader():
    page = make_site.rooms_page()
    rooms = {path.parent.name for path in (KIT / "grader").glob("*/__init__.py")}
    assert len(rooms) >= 18
    assert set(re.findall(r"<text[^>]*>(\w+)</text>", page)) == rooms
    assert f"That is {len(rooms)} rooms on " in page and "no circles" in page
    assert re.search(r"^\| grader \| \d+ \| \d+ / \d+ / \d+ \| ", page, re.M)


def test_a_level_is_one_above_the_highest_that_is_imported():
    rooms = {"low": [], "middle": ["low"], "high": ["middle", "low"], "alone": []}
    graph = ImportGraph({name: frozenset(used) for name, used in rooms.items()})
    assert graph.levels == {"low": 0, "middle": 1, "high": 2, "alone": 0}
    assert graph.essential()["high"] == {"middle"}
    assert graph.summary() == "4 rooms on 3 levels, 3 arrows, no circles"


def test_a_circle_is_counted_and_not_drawn():
    rooms = {"a": ["b"], "b": ["c"], "c": ["a", "low"], "low": [], "top": ["a"]}
    graph = ImportGraph({name: frozenset(used) for name, used in rooms.items()})
    assert graph.circles == [{"a", "b", "c"}]
    assert graph.levels == {"low": 0, "a": 1, "b": 1, "c": 1, "top": 2}
    assert graph.summary() == "5 rooms on 3 levels, 5 arrows, 1 circle"
    with pytest.raises(ValueError, match="hint: they can't be drawn"):
        graph.svg()


def test_the_one_kind_without_a_program_is_the_one_without_an_end():
    found = {kind for program in make_site.manifest.programs() for kind in program.finds}
    assert set(make_site.WORDS) - found == {"launch timeout"}


def test_every_bug_of_the_suite_is_shown_with_its_fix(site):
    shown = "".join(words(path) for path in (site / "findings").glob("*.html"))
    for program in make_site.manifest.programs():
        if not program.correct:
            assert program.path.stem in shown
            source = program.path.read_text()
            wrong, right = make_site.twin(source, False), make_site.twin(source, True)
            assert wrong != right
            assert not any("FIXED" in line for line in wrong + right)


def test_pictures_and_formulas_are_drawn(site):
    page = (site / "handout/20-part-1-autodiff.html").read_text()
    assert page.count('class="formula"') > 10
    assert page.count('class="math"') > 50
    assert '<figure class="picture">' in page
    assert "mathjax" not in page.lower() and "$$" not in page


def test_the_site_needs_no_network(site):
    for path in site.rglob("*.html"):
        text = path.read_text()
        assert not re.search(r'<(?:script|img|iframe)[^>]*src="(?:https?:)?//', text), path
        assert not re.search(r'<link[^>]*rel="stylesheet"[^>]*href="(?:https?:)?//', text), path


@needs_chromium
def test_the_search_finds_without_a_server(site, tmp_path):
    page, _ = visit(tmp_path, (site / "search.html?q=coalesced").as_uri().replace("%3F", "?"),
                    "--virtual-time-budget=5000", "--allow-file-access-from-files")  # fmt: skip
    assert "findings/advice-uncoalesced-access.html" in page
    assert "handout/30-part-2-gpu-executor.html" in page


def test_the_index_of_the_search_holds_the_pages(site):
    index = (site / "searchindex.js").read_text()
    for name in ("handout/30-part-2-gpu-executor", "findings/leak", "catalogue", "api"):
        assert f'"{name}"' in index


def test_a_link_that_leads_nowhere_is_told(site, tmp_path):
    assert list(make_site.dead_links(site)) == []
    shutil.copytree(site, tmp_path / "site")
    page = tmp_path / "site/suite.html"
    page.write_text(page.read_text() + '<a href="api.html#no">a</a><a href="no.html">b</a>')
    told = ["suite.html: api.html#no leads nowhere", "suite.html: no.html leads nowhere"]
    assert list(make_site.dead_links(tmp_path / "site")) == told


@pytest.mark.parametrize(("page", "fails"), [("index", False), ("no-such-page", True)])
def test_a_page_that_names_one_that_is_not_there_is_an_error(page, fails, tmp_path, monkeypatch):
    """A warning of Sphinx ends the build."""

    def broken(folder):
        make_site.write(folder / "conf.py", (KIT / "docs/conf.py").read_text())
        make_site.write(folder / "_static/kit.css", "")
        make_site.write(folder / "index.md", f"# Site\n\n{{doc}}`{page}`\n")

    monkeypatch.setattr(make_site, "write_sources", broken)
    monkeypatch.setattr(sys, "argv", ["make_site.py", "--output", str(tmp_path)])
    assert (make_site.main() != 0) is fails
