"""One C file to embed: a contract, declarations, kernels for several instruction sets, and their dispatch."""
