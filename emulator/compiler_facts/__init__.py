"""What GCC and clang understood of a source, against which the passes check what they believe.

It imports none of the other rooms. Start reading in addressed.py.
"""
