"""Automatic scheduling: the default schedule of every nest, and the spaces that searches explore."""
