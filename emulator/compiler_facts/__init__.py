"""What GCC and clang understood of a source: the proof of what the passes believe.

It imports none of the other rooms. Start reading in addressed.py.
"""
