# These commands do all the set-up:
#   make bench   measures the kernels against the libraries installed here, and shows the table
#                (make bench-all: installs the libraries that are missing first, as far as it can)
#   make results measures for the documentation: README.md, docs/benchmarks.md
#   make test    runs the tests (make test-quick: in a minute, those without large programs)
#                (make test-python: the quick ones on each Python found; make test-oldest: on the oldest packages allowed)
#   make docs    builds the pages as a site in build/docs, and fails on a link that leads nowhere
#   make dist    builds what is published, in dist (make wheel-check: builds, installs and tries it elsewhere)
# Each creates the environment that it needs in .venv, once; `make PYTHON=python3.12 test` picks the interpreter.

# The first interpreter found that is new enough.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$p" && break; done)
VENV ?= .venv
BIN := $(VENV)/bin
BENCH_ARGS ?= --quick
TEST_ARGS ?=
# Few tests at a time: tests/conftest.py puts the long ones first, and no worker takes many of them.
PYTEST := $(BIN)/python -m pytest -n auto --maxschedchunk 24

# The interpreters of `make test-python`, of which those that run are used.
PYTHONS ?= python3.11 python3.12 python3.13 python3.14

.PHONY: bench bench-all results test test-quick test-python test-oldest lint docs dist wheel-check clean

# `poly machine` calibrates the machine if that was not done: the benchmarks never change what the model knows.
bench: $(VENV)/bench-needs.stamp
	$(BIN)/poly machine
	$(BIN)/poly bench $(BENCH_ARGS)

bench-all: $(VENV)/bench-needs.stamp
	$(BIN)/python -m benchmarks.peers.install
	$(BIN)/poly machine
	$(BIN)/poly bench $(BENCH_ARGS)

results: $(VENV)/bench-needs.stamp
	$(BIN)/poly machine
	$(BIN)/poly bench $(BENCH_ARGS) --record docs/results
	$(BIN)/python docs/make_results.py

test: $(VENV)/dev.stamp
	$(PYTEST) $(TEST_ARGS)

test-quick: $(VENV)/dev.stamp
	$(PYTEST) -m "not slow" tests/unit tests/golden tests/errors $(TEST_ARGS)

test-python:
	@for p in $(PYTHONS); do \
		v=$$("$$p" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || { echo "no $$p here"; continue; }; \
		echo "Python $$v" && $(MAKE) PYTHON="$$p" VENV="$(VENV)-$$v" test-quick || exit 1; \
	done

test-oldest: $(VENV)-oldest/oldest.stamp
	$(MAKE) VENV=$(VENV)-oldest test-quick

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/mypy

docs: $(VENV)/docs.stamp
	$(BIN)/sphinx-build -q -W --keep-going -E -c docs . build/docs
	@echo "the site begins at build/docs/docs/index.html"

dist: $(VENV)/dev.stamp
	POLY_RELEASE=1 $(BIN)/python -m build --outdir dist .
	POLY_RELEASE=1 $(BIN)/python -m build --outdir dist benchmarks

wheel-check: $(VENV)/dev.stamp
	.ci/wheel-check $(BIN)/python

clean:
	rm -rf $(VENV) $(VENV)-* .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist

# A stamp is written when its extra is installed, so an interrupted installation is taken up again.
$(VENV)/%.stamp: pyproject.toml
	@test -n "$(PYTHON)" || { echo "poly needs Python 3.11 or newer: install it, or name it with PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "$(PYTHON) cannot make an environment: on Debian, apt-get install python3-venv" >&2; exit 1; }
	$(BIN)/python -m pip install --quiet --editable '.[$*]'
	@touch $@

# The constraints first: the stamp of the extra `dev` then says that it is installed.
$(VENV)-oldest/oldest.stamp: pyproject.toml
	$(PYTHON) -m venv $(VENV)-oldest
	$(PYTHON) .ci/oldest.py > $(VENV)-oldest/constraints.txt
	PIP_CONSTRAINT=$(VENV)-oldest/constraints.txt $(MAKE) VENV=$(VENV)-oldest $(VENV)-oldest/dev.stamp
	@touch $@
