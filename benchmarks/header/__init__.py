"""`poly bench header`: a header's speed, dispatch, compile time and size, with two compilers and against OpenBLAS."""
