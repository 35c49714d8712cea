"""Map loops to the work-items of a group: which item runs what, shared reductions, and barriers."""
