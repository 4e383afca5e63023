"""The one room that runs a student's code: a worker process, and proxies that drive it.

It may import base, sandbox and building. Start reading in remote.py.
"""
