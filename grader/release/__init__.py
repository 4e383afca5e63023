"""From the solution to what students get.

It may import course and building. Start reading in holes.py.
"""
