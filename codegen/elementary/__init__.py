"""Elementary functions: C functions that a compiler can vectorise, and functions of whole vectors."""
