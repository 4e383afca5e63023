"""Which tests are slow, by the processor time that they take; `make quick` leaves them out.

They are those in tests/slow.txt, and those that need a fixture that stands there: what several
tests share is charged to none of them, since whichever comes first would pay for it. At the end of
a run pytest names what else took longer than it may. `pytest --write-slow` writes the list anew by
what it ran; other lines stay.
"""

import resource
from pathlib import Path

import pytest

KIT = Path(__file__).resolve().parents[2]
LIST = KIT / "tests" / "slow.txt"
#: Seconds of processor, those of ended children included, that a quick test may take.
MOST = 0.5
_SECONDS = "seconds of processor"


def listed():
    """The names of the slow tests, without parameters, and of the slow fixtures."""
    return set(LIST.read_text().split())


def function_of(name):
    """A test's name without its parameters."""
    return name.partition("[")[0]


def _processor():
    both = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


def _name_of(fixture):
    """Its file and its name, as of a test."""
    path = Path(fixture.func.__code__.co_filename)
    return f"{path.relative_to(KIT).as_posix()}::{fixture.argname}"


def _fixtures_of(item):
    """The names of the kit's fixtures that a test needs."""
    all_of_them = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
    found = [fixture for some in all_of_them.values() for fixture in some]
    code = [getattr(fixture.func, "__code__", None) for fixture in found]
    return {
        _name_of(fixture)
        for fixture, own in zip(found, code, strict=True)
        if own is not None and Path(own.co_filename).is_relative_to(KIT / "tests")
    }


class SlowTests:
    """A plugin of pytest that marks slow tests, and measures all."""

    def __init__(self, writes):
        self.writes, self.slow = writes, listed()
        self.took = {}  # the longest of each function and shared fixture, in seconds
        self.began = 0.0
        self.shared = {}  # what shared fixtures took for the test that runs

    def pytest_collection_modifyitems(self, items):
        """Marks the slow ones."""
        for item in items:
            if self.slow & {function_of(item.nodeid), *_fixtures_of(item)}:
                item.add_marker(pytest.mark.slow)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        """Begins to measure a test."""
        self.began, self.shared = _processor(), {}
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef, request):
        """Measures a fixture that several tests share."""
        began, before = _processor(), sum(self.shared.values())
        try:
            return (yield)
        finally:
            inner = sum(self.shared.values()) - before
            own = getattr(fixturedef.func, "__code__", None)
            is_ours = own and Path(own.co_filename).is_relative_to(KIT / "tests")
            if fixturedef.scope != "function" and is_ours:
                self.shared[_name_of(fixturedef)] = _processor() - began - inner

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item, call):
        """Writes into a test's last report what it took."""
        report = yield
        if report.when == "teardown":
            own = _processor() - self.began - sum(self.shared.values())
            took = {function_of(item.nodeid): own, **self.shared}
            report.user_properties.append((_SECONDS, took))
        return report

    def pytest_runtest_logreport(self, report):
        """Keeps it, in the process that reports."""
        for name, *values in report.user_properties:
            if name == _SECONDS and report.when == "teardown":
                for each, seconds in values[0].items():
                    self.took[each] = max(seconds, self.took.get(each, 0.0))

    def pytest_terminal_summary(self, terminalreporter):
        """Names the quick tests and fixtures that were slow, or writes the list."""
        slow = {name for name, seconds in self.took.items() if seconds > MOST}
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
