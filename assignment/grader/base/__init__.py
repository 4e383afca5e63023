"""Files, tables and text: what everything else may use.

It may import nothing of the grader. Start reading in files.py.
"""
