"""Schedules: nests with steps, each proven legal, and what refuses the others."""
