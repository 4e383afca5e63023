"""Reads CUDA, and makes plain C++ of its launches, kernels and shared variables.

It imports none of the other rooms. Start reading in tokens.py.
"""
