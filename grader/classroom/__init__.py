"""The class as a whole: who is in it, how each stands, its pages and gradebooks.

It imports base, report and submission. Start reading in store.py.
"""
