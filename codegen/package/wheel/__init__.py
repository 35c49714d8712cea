"""Python packages of compiled kernels: the wheel, its module, and what runs in it without poly."""
