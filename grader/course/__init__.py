"""What a course states: its name, dates and files, and the points of its rubric.

It may import base. Start reading in rubric.py.
"""
