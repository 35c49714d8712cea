"""Spaces of schedules, derived from a nest, its sizes and a target."""
