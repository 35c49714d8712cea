"""The proof of the search: small spaces, enumerated and measured once, on which every strategy can be run again."""
