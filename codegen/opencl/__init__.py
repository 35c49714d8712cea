"""OpenCL: a program as device code with a plan of launches, and the host side that runs it."""
