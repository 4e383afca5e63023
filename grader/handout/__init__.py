"""What people read, its formulas and pictures, and the figures in it.

It imports base, building, checks, course, release and report. Start reading in documents.py.
"""
