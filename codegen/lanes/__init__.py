"""Loops in vector lanes: which loops can run so, and how each kind is printed."""
