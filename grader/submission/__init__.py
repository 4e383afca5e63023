"""What a student handed in: reads a folder or an archive that may be hostile.

It imports release. Start reading in reader.py.
"""
