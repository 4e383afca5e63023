"""Scores a student's tree from outside: builds and runs it in child processes, and judges."""

__version__ = "0.1.0"
