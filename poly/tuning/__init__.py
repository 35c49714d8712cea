"""Tuning: a search that is shown while it runs, starts from what is known of other sizes, and keeps what it finds."""
