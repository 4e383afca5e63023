"""How fast kernels are, beside the reference's, timed in turn on one GPU.

It imports sandbox and student. Start reading in checks.py.
"""
