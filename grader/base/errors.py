"""The error for a command that can't do what was asked."""

from __future__ import annotations


class UsageError(Exception):
    """The command can't do what was asked; the message says why. `grader` prints it and exits with
    2."""
