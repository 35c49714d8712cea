"""The benchmarks: workloads, the libraries to compare with, the runner and its reports."""
