"""Tests of many like cases: a run has a share of them, `make test-all` every one.

@pytest.mark.parametrize("seed", share(range(40), 8))     # five, or 40
def test_it(seed): ...

def test_them(many):
    for seed in range(many(40, 5)): ...
"""

from collections import Counter

import pytest

MARK = "more"
OPTION = "--all"


def share(cases, every, key=lambda case: None):
    """Cases for parametrize, of which only some run without --all: of those with one key the first,
    and each `every`-th behind it."""
    seen, found = Counter(), []
    for case in cases:
        kind = key(case)
        marks = [getattr(pytest.mark, MARK)] if seen[kind] % every else []
        found.append(pytest.param(case, marks=marks))
        seen[kind] += 1
    return found


class Shares:
    """A plugin of pytest that leaves out what the mark says, unless cases are named."""

    def __init__(self, config, takes_all):
        named = any("[" in each.partition("::")[2] for each in config.args)
        named = named or config.option.keyword or config.getoption("lf", False)
        self.takes_all = takes_all or bool(named)

    def pytest_collection_modifyitems(self, config, items):
        """Leaves them out."""
        if self.takes_all:
            return
        left = [item for item in items if item.get_closest_marker(MARK)]
        if left:
            config.hook.pytest_deselected(items=left)
            items[:] = [item for item in items if not item.get_closest_marker(MARK)]

    def pytest_terminal_summary(self, terminalreporter):
        """Says that there are more."""
        if not self.takes_all:
            terminalreporter.write_line(f"of many like cases a share ran; hint: pytest {OPTION}")
