"""Microkernels: scalar types, instruction sets, hand-tuned kernels and their contracts."""
