"""Analyses of nests and loop trees: dependences, legality, contractions, bounds, work."""
