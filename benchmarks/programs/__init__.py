"""Whole programs against compilers: `poly bench polybench` and `poly bench loops`."""
