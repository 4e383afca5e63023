"""A contained process: what it may see and use, and how it is ended.

It imports base. Start reading in process.py.
"""
