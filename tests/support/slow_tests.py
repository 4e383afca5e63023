"""Which tests are slow, by the processor time that they take: `make quick` leaves them out, `make
test` most of them.

They are those in tests/slow.txt, and those that need a fixture that stands there: what several
tests share is charged to none of them, since whichever comes first would pay for it. At the end of
a run pytest names what else took longer than it may. `pytest --write-slow` writes the list anew by
what it ran, with the most seconds that one took; other lines stay.

`make test` takes minutes: with --few pytest runs of each slow test that takes a few seconds, or is
marked as core, the first case, and each twentieth behind it. --rest runs what that leaves out.
"""

import collections
import math
import resource
from pathlib import Path

import pytest

KIT = Path(__file__).resolve().parents[2]
LIST = KIT / "tests" / "slow.txt"
#: Seconds of processor, those of ended children included, that a quick test may take.
MOST = 0.5
#: The same of one of a few, with its part of what it shares; of how many cases there is one.
_MOST_OF_FEW, _EACH = 3, 20
#: The options.
FEW, REST = "--few", "--rest"
_SECONDS = "seconds of processor"


def listed():
    """The names of the slow tests, without parameters, and of the slow fixtures: name -> seconds,
    rounded up."""
    lines = (line.split() for line in LIST.read_text().splitlines())
    return {name: int(seconds) for name, seconds in lines}


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
    """A plugin of pytest that marks slow tests, and measures all.

    Attributes:
        part: FEW or REST: what a run leaves out; None if nothing.
    """

    def __init__(self, writes, part=None):
        self.writes, self.slow, self.part = writes, listed(), part
        self.took = {}  # the longest of each function and shared fixture, in seconds
        self.began = 0.0
        self.shared = {}  # what shared fixtures took for the test that runs

    def pytest_collection_modifyitems(self, config, items):
        """Marks the slow ones; leaves out those that are of another part."""
        cases, left = collections.Counter(), []
        needs = [self.slow.keys() & {function_of(i.nodeid), *_fixtures_of(i)} for i in items]
        users = collections.Counter(name for names in needs for name in names)
        for item, names in zip(items, needs, strict=True):
            own = function_of(item.nodeid)
            if names:
                item.add_marker(pytest.mark.slow)
            seconds = sum(self.slow[n] / (1 if n == own else users[n]) for n in names)
            is_core = item.get_closest_marker("core") is not None
            is_wanted = seconds <= _MOST_OF_FEW or is_core
            is_of_few = not names or (is_wanted and cases[own] % _EACH == 0)
            cases[own] += 1
            if self.part and is_of_few != (self.part == FEW):
                left.append(item)
        if left:
            config.hook.pytest_deselected(items=left)
            out = set(left)
            items[:] = [item for item in items if item not in out]

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
        write = terminalreporter.write_line
        if self.part == FEW:
            write(
                "of slow tests a few ran; hint: make test-rest runs the others, make test-all all"
            )
        if self.writes:
            found = {name: each for name, each in self.slow.items() if name not in self.took}
            found |= {name: math.ceil(self.took[name]) for name in slow}
            lines = (f"{name} {seconds}\n" for name, seconds in sorted(found.items()))
            LIST.write_text("".join(lines))
        elif slow - set(self.slow):
            write(
                f"took over {MOST:g} s of processor; hint: pytest --write-slow on an idle machine"
            )
            for name in sorted(slow - set(self.slow), key=lambda name: -self.took[name]):
                write(f"  {self.took[name]:.1f} s  {name}")
