"""The commands of `grader` beside those about one submission: a module each.

A module has `add(commands)`, which adds its parser with `set_defaults(run=...)`; `run` takes the
options and a console and returns the exit code, as the commands in grader.cli do.
"""
