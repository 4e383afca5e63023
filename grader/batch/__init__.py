"""Many submissions, on one machine or on many.

It may import grading and collection. Start reading in batch.py.
"""
