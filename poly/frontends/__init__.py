"""The front ends: each turns a user's text into a `poly.ir.nest.Nest`."""
