"""Children over a small tree of one module, a class in all states, and the emulated GPU."""

import os
import shutil
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
KIT = TESTS.parent
# What several tests need, the programs of the emulated GPU, and the emulated GPU itself.
FOLDERS = ("tests/support", "tools", "tests/emulator", "tests/suite", "tests/programs", "emulator")
sys.path[:0] = [str(KIT / folder) for folder in FOLDERS]

import kit as emulator_kit  # noqa: E402 (after the path to it)
import scratch_in_memory  # noqa: E402
from class_states import class_in_all_states  # noqa: E402
from grader.classroom.store import read_classbook  # noqa: E402
from grader.sandbox.process import Limits  # noqa: E402
from grader.student.remote import Remote  # noqa: E402
from kept_builds import kept_builds  # noqa: E402
from shares import OPTION, Shares  # noqa: E402
from slow_tests import FEW, REST, SlowTests  # noqa: E402

# glibc fills what malloc gives and free takes, so that no test passes because memory was zero.
os.environ.setdefault("MALLOC_PERTURB_", "165")


def pytest_addoption(parser):
    """Options to write down which tests are slow, to run few of them or the others, and to run all
    cases of all tests."""
    parser.addoption("--write-slow", action="store_true", help="write tests/slow.txt anew")
    parser.addoption(FEW, action="store_const", const=FEW, dest="part", help="few slow tests")
    parser.addoption(
        REST, action="store_const", const=REST, dest="part", help=f"not those of {FEW}"
    )
    parser.addoption(OPTION, action="store_true", help="all of many like cases, not a share")


def pytest_configure(config):
    """Tells slow tests from quick ones, makes one folder for the libraries of the emulated GPU that
    all workers of a run share, and moves temporary folders to memory."""
    slow = SlowTests(config.getoption("--write-slow"), config.getoption("part"))
    config.pluginmanager.register(slow)
    config.takes_all = config.getoption(OPTION)
    config.pluginmanager.register(Shares(config, config.takes_all))
    if emulator_kit.KEPT not in os.environ:
        os.environ[emulator_kit.KEPT] = config.kept_libraries = tempfile.mkdtemp()
    config.scratch_in_memory = scratch_in_memory.use()


def pytest_unconfigure(config):
    """Removes what was made."""
    shutil.rmtree(getattr(config, "kept_libraries", ""), ignore_errors=True)
    if getattr(config, "scratch_in_memory", None):
        config.scratch_in_memory.remove()


@pytest.fixture(scope="session")
def many(request):
    """many(all, some): how many like cases a test tries, by --all; see tests/support/shares.py."""
    return lambda every, some: every if request.config.takes_all else some


@pytest.fixture(scope="module")
def same_builds():
    """Builds of equal sources are made once; for tests of what comes after the build."""
    with kept_builds():
        yield


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


@pytest.fixture(scope="session")
def all_states(tmp_path_factory):
    """Results of a class with one student at least in each state there is. Tests take a copy."""
    return class_in_all_states(tmp_path_factory.mktemp("class"))


@pytest.fixture
def book(all_states, tmp_path):
    """A copy of that class, for one test."""
    shutil.copytree(all_states, tmp_path / "results")
    return read_classbook(tmp_path / "results")


@pytest.fixture(scope="session")
def kit(tmp_path_factory):
    """The emulated GPU's library and the programs of tests/emulator, built once for all workers."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    return emulator_kit.built(folder / "emulator")
