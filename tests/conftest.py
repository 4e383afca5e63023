"""Children over a small tree of one module, for the tests of what drives a student's code."""

import sys
from contextlib import contextmanager

import pytest

from grader.remote import Remote
from grader.sandbox import Limits


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A child for tests that leave it usable."""
    root = tmp_path_factory.mktemp("shared")
    with Remote(sys.executable, [str(root)], root) as remote:
        yield remote


@pytest.fixture
def student(tmp_path):
    """Starts a child over a tree with one module, `work`, which holds the code given."""

    @contextmanager
    def start(code="", wall=20.0, output=1 << 20, cpu=None, **options):
        (tmp_path / "work.py").write_text(code)
        limits = Limits(wall=wall, output=output, cpu=cpu)
        with Remote(sys.executable, [str(tmp_path)], tmp_path, limits, **options) as remote:
            yield remote

    return start


@pytest.fixture
def failure(student):
    """The error of importing the code given, or of calling one of its functions."""

    def provoke(kind, code, call=None, **options):
        with pytest.raises(kind) as caught, student(code, **options) as remote:
            work = remote.import_("work")
            if call:
                getattr(work, call)()
            remote.flush()
        return caught.value

    return provoke
