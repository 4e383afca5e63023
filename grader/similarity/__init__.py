"""How alike the submissions of a class are. A measure, never a verdict.

It may import classroom and submission. Start reading in measure.py.
"""
