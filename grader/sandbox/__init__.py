"""A contained process: what it may see and use, and how it is ended.

It may import base and course. Start reading in process.py.
"""
