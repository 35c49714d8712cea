"""The transformations of loops, one rule a file: when it applies, its sizes, the usual ones, its steps."""
