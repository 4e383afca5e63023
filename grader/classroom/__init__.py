"""The class as a whole: who is in it, how each stands, its pages and gradebooks.

It may import report and what is below it. Start reading in store.py.
"""
