"""Why a check failed, or passed by luck: the tools that see every access.

It imports base, building, checks, course, sandbox and student. Start reading in diagnosis.py.
"""
