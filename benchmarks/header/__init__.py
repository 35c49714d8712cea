"""`poly bench header`: what a header is worth: speed, dispatch, compile time, size, two compilers, and OpenBLAS."""
