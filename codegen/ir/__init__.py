"""The values that code is printed from: programs, loops, instructions, integer expressions, and statement bodies."""
