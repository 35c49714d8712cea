"""Code generation: expressions, loops, C and OpenCL C source, builds, and calls of what was built."""
