"""The C compiler, and builds of libraries."""
