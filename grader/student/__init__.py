"""Drives a student's code in a contained process: the worker in there, and proxies out here.

All of the grader's checks run a submission through it. What compilers do with one, grading/ and
explain/ start, contained as well: submission_build.py and rerun.py. `make status` runs a student's
work uncontained, on the student's machine: status/child.py.

It imports base and sandbox. Start reading in remote.py.
"""
