"""Why a check failed, or passed by luck: the tools that see every access.

It may import all below the checks, and the checks. Start reading in diagnosis.py.
"""
