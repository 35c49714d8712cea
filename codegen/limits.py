"""The largest sizes and arrays: with these, all arithmetic on sizes stays in 64 bits."""

MOST_SIZE = (1 << 48) - 1
"""The greatest value of a size, and of an integer in a nest's shapes, bounds and indices."""

MOST_BYTES = 1 << 48
"""The bytes of the largest array: more than any machine can address."""
