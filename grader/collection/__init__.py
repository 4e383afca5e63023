"""What a platform's download means: whose each submission is, and what is in it.

It may import submission and classroom. Start reading in collect.py.
"""
