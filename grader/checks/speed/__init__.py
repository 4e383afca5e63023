"""How fast kernels are, beside the reference's, timed in turn on one GPU.

It may import the checks. Start reading in checks.py.
"""
