"""Ends of a check that are neither a pass nor the submission's failure."""

from __future__ import annotations


class NotHere(Exception):
    """This machine can't make the check. It is skipped, and its points count for nobody."""


class Flag(Exception):
    """What was measured can't be true. An instructor must look; until then the points are open."""
