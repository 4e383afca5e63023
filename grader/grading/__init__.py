"""Grades one submission: builds it, runs its checks, decides and explains.

It may import all above except a class's rooms. Start reading in runner.py.
"""
