"""Lower a loop tree to a program for `codegen`: copies and microkernels become statements, and sets become loops."""
