"""Spaces of schedules as values: structures, knobs and points."""
