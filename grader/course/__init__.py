"""What a course states: its name, dates and files, and the points of its rubric.

It imports base. Start reading in rubric.py.
"""
