"""Reads CUDA, and makes plain C++ of its launches, kernels and shared variables."""
