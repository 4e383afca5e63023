"""What people read, its formulas and pictures, and the figures in it.

It may import grading and release. Start reading in documents.py.
"""
