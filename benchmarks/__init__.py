"""The roof: workloads, the libraries to compare with, the runner and its reports. Uses poly's public API alone."""
