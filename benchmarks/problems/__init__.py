"""The computations that are measured, in the terms of their fields: what everybody, poly and peers, is asked to do."""
