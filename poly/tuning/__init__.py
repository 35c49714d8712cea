"""Tuning: a search with a progress display that starts from records of other sizes and stores its results."""
