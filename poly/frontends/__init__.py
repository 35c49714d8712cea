"""The front doors: each turns what a user writes into a `poly.nest.Nest`."""
