"""The result of one submission, and its forms for its readers.

It imports base, building, checks, course, sandbox and student. Start reading in model.py.
"""
