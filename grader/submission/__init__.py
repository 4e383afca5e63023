"""What a student handed in: reads a folder or an archive that may be hostile.

The bounds on what an archive holds are in archive.py; tars.py and zips.py know what deceives
tarfile and zipfile; contained_reader.py bounds the time and memory of the whole. It imports
release. Start reading in reader.py.
"""
