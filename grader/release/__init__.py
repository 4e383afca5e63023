"""From the solution to what students get.

It imports base, building and course. Start reading in holes.py.
"""
