"""The command `grader`: main.py, and a module a subcommand.

It may import everything. Start reading in main.py.
"""
