"""The differential fuzzer: random nests under random schedules, against an interpreter that shares nothing with poly.

syntax        a nest as a value of the fuzzer's own, and its text for poly
nests         random nests; names, fitting: their names, and arrays that hold all that is accessed
contractions  random contractions; einsums: random einsums
interpreter   what a nest computes, with a bound on rounding
schedules     random steps
data          arrays with guards and poison
routes        ways to compile and run: C in process, headers, OpenCL
check         one pair of a nest and a schedule; cases of one nest with several schedules
worker, run   processes that work on cases, and what survives their crashes
reduce        a smaller case that fails alike; report prints it as a test
"""
