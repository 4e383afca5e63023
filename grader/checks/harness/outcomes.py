"""Ends of a check that are neither a pass nor a failure of the submission."""

from __future__ import annotations


class NotHere(Exception):
    """This machine can't run the check. The check is skipped, and its points count for nobody."""


class Flag(Exception):
    """The measured value can't be true. The points stay open until an instructor has looked."""
