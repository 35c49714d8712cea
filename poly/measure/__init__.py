"""Measurement: candidates are compiled in parallel, then checked and timed one at a time in a child process.

That process imports little: nothing is imported here.
"""
