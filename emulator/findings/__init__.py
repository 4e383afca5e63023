"""What the checked build found: kinds, source lines, sentences.

It imports none of the other rooms. Start reading in reading.py.
"""
