"""`poly bench FILE:NAME`: a user's own nest, beside C compilers, functions in Python and other nests."""
