"""Which tests are slow, by the processor time that they take; `make quick` leaves them out.

They are those in tests/slow.txt, and those that need all programs of the emulated GPU. At the end
of a run pytest names the other tests that took longer than they may. `pytest --write-slow` writes
the list anew by what it ran; the lines of other tests stay.
"""

import resource
from pathlib import Path

import pytest

KIT = Path(__file__).resolve().parents[2]
LIST = KIT / "tests" / "slow.txt"
#: Seconds of processor, those of ended children included, that a quick test may take.
MOST = 0.5
#: Builds that take half a minute, and serve all who ask for them.
BUILDS = ("kit",)
_SECONDS = "seconds of processor"


def listed():
    """The names of the slow tests, without parameters."""
    return set(LIST.read_text().split())


def function_of(name):
    """A test's name without its parameters."""
    return name.partition("[")[0]


def _processor():
    both = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


def _needs_builds(item):
    return any(name in BUILDS for name in getattr(item, "fixturenames", ()))


class SlowTests:
    """A plugin of pytest that marks slow tests, and measures all."""

    def __init__(self, writes):
        self.writes, self.slow = writes, listed()
        self.took = {}  # the longest of each function, in seconds
        self.kept = set()  # those that BUILDS make slow
        self.began = 0.0

    def pytest_collection_modifyitems(self, items):
        """Marks the slow ones."""
        for item in items:
            if _needs_builds(item) or function_of(item.nodeid) in self.slow:
                item.add_marker(pytest.mark.slow)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        """Begins to measure a test."""
        self.began = _processor()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item, call):
        """Writes into a test's last report what it took."""
        report = yield
        if report.when == "teardown":
            took = _processor() - self.began, _needs_builds(item)
            report.user_properties.append((_SECONDS, *took))
        return report

    def pytest_runtest_logreport(self, report):
        """Keeps it, in the process that reports."""
        for name, *values in report.user_properties:
            if name == _SECONDS and report.when == "teardown":
                seconds, needs_builds = values
                function = function_of(report.nodeid)
                self.took[function] = max(seconds, self.took.get(function, 0.0))
                self.kept |= {function} if needs_builds else set()

    def pytest_terminal_summary(self, terminalreporter):
        """Names the quick tests that were slow, or writes the list."""
        slow = {name for name, seconds in self.took.items() if seconds > MOST} - self.kept
        if self.writes:
            names = slow | (self.slow - set(self.took))
            LIST.write_text("".join(f"{name}\n" for name in sorted(names)))
        elif slow - self.slow:
            write = terminalreporter.write_line
            write(
                f"took over {MOST:g} s of processor; hint: pytest --write-slow on an idle machine"
            )
            for name in sorted(slow - self.slow, key=lambda name: -self.took[name]):
                write(f"  {self.took[name]:.1f} s  {name}")
