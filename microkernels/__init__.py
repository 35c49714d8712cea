"""What one core does best: scalar types, instruction sets, hand-tuned kernels and their contracts."""
