"""The intermediate representation: nests and loop trees as integer sets, and the queries on sets that others share."""
