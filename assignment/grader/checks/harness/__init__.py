"""What checks work with: what they get and compare, a kernel's calls, a training; no check itself.

It imports course, sandbox and student. Start reading in context.py.
"""
