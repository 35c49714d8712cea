"""Loops that work-groups and work-items of a device share: the kernels they make, who runs what, and who waits."""
