"""The tree that is graded: lays it out, and reads what compilers and object files say.

It imports course and sandbox. Start reading in tree.py.
"""
