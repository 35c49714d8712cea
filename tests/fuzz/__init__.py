"""The differential fuzzer: random nests under random schedules, against an interpreter that shares nothing with poly.

syntax        the fuzzer's own representation of a nest, and its text for poly
nests         random nests; names, fitting: their names, and arrays that fit their accesses
contractions  random contractions; einsums: random einsums
interpreter   the results of a nest, with a bound on rounding errors
schedules     random steps
data          arrays with guards and poison
routes        ways to compile and run: C in process, headers, OpenCL
check         one pair of a nest and a schedule; cases of one nest with several schedules
workers, run  processes that work on cases, and their supervision
reduce        a smaller case with the same failure; report prints it as a test
"""
