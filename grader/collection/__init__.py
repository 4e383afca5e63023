"""What a platform's download means: whose each submission is, and what is in it.

It imports base, classroom and submission. Start reading in collect.py.
"""
