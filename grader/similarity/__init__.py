"""How alike the submissions of a class are. A measure, never a verdict.

It imports base, building, classroom, report and submission. Start reading in measure.py.
"""
