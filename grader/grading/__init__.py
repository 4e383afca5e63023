"""Grades one submission: builds it, runs its checks, decides and explains.

It imports base, building, checks, course, explain, report, sandbox, student and submission. Start
reading in runner.py.
"""
