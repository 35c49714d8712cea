"""A package that extends poly by one of each thing."""
