"""What a student handed in: reads a folder or an archive that may be hostile.

It may import base, course, sandbox and building. Start reading in reader.py.
"""
