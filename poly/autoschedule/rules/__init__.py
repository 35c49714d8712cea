"""The loop transformations, one rule per file: when it applies, its possible and usual sizes, its steps."""
