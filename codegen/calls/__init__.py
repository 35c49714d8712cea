"""Calls of what was built: checks of arguments, the fast path, and arrays of other libraries."""
