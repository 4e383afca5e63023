"""The one room that runs a student's code: a worker process, and proxies that drive it.

It imports base and sandbox. Start reading in remote.py.
"""
