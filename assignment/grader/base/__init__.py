"""Files, tables and text: what everything else may use.

It imports nothing of the grader. Start reading in files.py.
"""
