"""The error of whoever typed the command."""

from __future__ import annotations


class UsageError(Exception):
    """What was asked for can't be done; the message says why. `grader` prints it and exits by 2."""
