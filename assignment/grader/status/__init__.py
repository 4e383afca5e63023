"""What a student sees of the checks in their own folder: `make status`.

It imports checks, course, release, report and student. Start reading in main.py.
"""
