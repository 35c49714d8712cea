"""C to nests: C is parsed, and translated to the Python text of the same loops, which the front end's walker reads."""
