"""The command `grader`: main.py, and a module a subcommand.

It imports base, batch, bench, building, checks, classroom, collection, course, grading, handout,
release, report, sandbox and similarity. Start reading in main.py.
"""
