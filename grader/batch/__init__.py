"""Many submissions, on one machine or on many.

It imports base, building, checks, classroom, collection, course, grading, report, sandbox and
submission. Start reading in batch.py.
"""
