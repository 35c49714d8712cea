"""The evaluation of the search: small spaces, enumerated and measured once, on which any strategy can be replayed."""
