"""What a student sees of the checks in their own folder: `make status`.

It may import what goes along to students. Start reading in table.py.
"""
