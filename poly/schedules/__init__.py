"""Schedules: the steps that transform a nest's loops, each proven legal or refused."""
