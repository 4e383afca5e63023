"""Has pytest ask for a second opinion on a test that fails on the emulated GPU, and reset the GPU
after a kernel that failed."""

import sys

import pytest

from . import second_opinion


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    from . import failed_device

    try:
        return (yield)
    except (Exception, pytest.fail.Exception) as error:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        told = second_opinion.judged(error, [*command, pyfuncitem.nodeid])
        told = failed_device.error_of(pyfuncitem.name, told)
        if told is error:
            raise
        raise told from error


def pytest_terminal_summary(terminalreporter):
    """Says at the end, too, which failures are no mistake of the student's."""
    failed = terminalreporter.stats.get("failed", [])
    theirs = [report.nodeid for report in failed if "NotYourMistake" in report.longreprtext]
    if theirs:
        terminalreporter.section("not your mistake: the emulated GPU is wrong in")
    for nodeid in theirs:
        terminalreporter.line(nodeid)
