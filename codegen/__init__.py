"""What it is handed becomes text and callables: expressions, loops, C source, build, load, call."""
