"""Kernels in a `.cl` file, and a C library that launches them."""
