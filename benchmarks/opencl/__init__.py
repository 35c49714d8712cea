"""`poly bench --target opencl`: poly's kernels on an OpenCL device, against other libraries' kernels."""
