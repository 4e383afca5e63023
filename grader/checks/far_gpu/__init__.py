"""A GPU in a process of its own, which tells by what kernels each float on it was made.

far_session.py is the grader's side, and says what it proves. far_device.py runs in that process,
from this folder and without the grader; far_device.cc is the library that a student's child gets.
It imports base, building, sandbox and student. Start reading in far_session.py.
"""
