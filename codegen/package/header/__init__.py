"""One C file to embed: declarations, a contract, kernels for several instruction sets, and the choice between them."""
