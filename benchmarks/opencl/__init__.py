"""`poly bench --target opencl`: kernels on an OpenCL device, beside those that others have for it."""
