"""The result of one submission, and its forms for its readers.

It may import the checks and what is below them. Start reading in model.py.
"""
