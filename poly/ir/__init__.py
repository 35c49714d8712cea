"""The representation: nests and loop trees as integer sets, and the questions about sets that all else asks."""
