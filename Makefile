# What a machine with Python >= 3.11 and make needs: everything else is installed into $(VENV).
# Bare `make` formats, lints, type-checks and tests; `make help` lists the rest.

VENV ?= .venv
BIN  := $(VENV)/bin
PIP  := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# The first interpreter that is new enough; override with `make PYTHON=/path/to/python3.12 …`.
ifndef PYTHON
PYTHON := $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
endif

# Third-party recordings that a few tests read and that we may not redistribute. Where the folder is
# not beside the checkout those tests skip and say so.
ifneq (,$(wildcard ../shared/data))
export PLANNER_RECORDED_DATA ?= $(abspath ../shared/data)
endif

.DEFAULT_GOAL := check
.NOTPARALLEL:
.PHONY: check optimize venv install format lint types test test-slow traces profiles accuracy readme bench help clean

check: format lint types pytest  ## Format, lint, type-check, test (what bare `make` does)

optimize: $(VENV)/.installed  ## The first answer: what BERT-base for 10 epochs costs and takes
	$(BIN)/planner optimize --model bert-base --epochs 10

venv: $(BIN)/python  ## Make the virtual environment (.venv)
install: $(VENV)/.installed-dev  ## Install the planner with everything the tests need

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "make: no Python >= 3.11 found; install one or say make PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# Both installs are editable: a pull changes the code at once, and only a change of what
# is depended on installs again.
$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing the planner into $(VENV) (about a minute, once) …" >&2
	$(PIP) -c constraints.txt -e .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing the planner and its tests' needs into $(VENV) (torch among them; some minutes, once) …" >&2
	$(PIP) -c constraints.txt -e '.[dev]'
	@touch $@ $(VENV)/.installed $(VENV)/.installed-service

$(VENV)/.installed-service: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing the planner and its service into $(VENV) (a minute or two, once) …" >&2
	$(PIP) -c constraints.txt -e '.[service]'
	@touch $@ $(VENV)/.installed

format: $(VENV)/.installed-dev  ## Rewrite the sources in the house's layout
	$(BIN)/ruff check --quiet --fix-only .
	$(BIN)/ruff format --quiet .

lint: $(VENV)/.installed-dev  ## Style, and who may import whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache

types: $(VENV)/.installed-dev  ## mypy, strict
	$(BIN)/mypy

.PHONY: pytest
pytest: $(VENV)/.installed-dev  ## The quick tests alone
	$(BIN)/python -m pytest -q -n 2 -m "not slow"

test: lint types pytest  ## Lint, types and the quick tests (under 10 minutes on 2 cores once installed)

test-slow: $(VENV)/.installed-dev  ## The tests that take minutes: re-tracing, wheels, refits
	$(BIN)/python -m pytest -q -n 2 -m slow

traces: $(VENV)/.installed-dev  ## Trace every workload of the zoo again (needs torch; long)
	$(BIN)/python -m planner.models.workloads.compile_zoo
	$(BIN)/python -m planner.models.workloads.make_traces

profiles: $(VENV)/.installed-dev  ## Trace what was published and fit speeds to it again (needs torch; long)
	$(BIN)/python -m planner.models.calibration.make_features
	$(BIN)/python -m planner.models.memory_features
	$(BIN)/python -m planner.models.calibration.make_profiles --date $(shell date -u +%F)

accuracy: $(VENV)/.installed-dev  ## Write docs/accuracy.md and README's table of predicted against published runs
	$(BIN)/python tools/accuracy_tables.py README.md
	$(BIN)/python tools/accuracy_page.py docs/accuracy.md $(shell date -u +%F)

.PHONY: accuracy-cpu accuracy-cuda
accuracy-cpu: $(VENV)/.installed-dev  ## Calibrate this machine, predict eight training steps, then run them (minutes)
	$(BIN)/python -m planner.models.microbenchmarks.accuracy_cpu

accuracy-cuda: $(VENV)/.installed-dev  ## The same on a CUDA card, with memory peaks: accuracy_cuda.json (8 minutes)
	$(BIN)/python -m planner.models.microbenchmarks.accuracy_cuda -o accuracy_cuda.json

readme: $(VENV)/.installed-dev  ## Run every command README shows and write its output again
	$(BIN)/python tools/readme.py README.md

bench: $(VENV)/.installed-dev  ## CPU seconds and memory of the commands people wait for
	$(BIN)/python tools/bench.py --traces
	$(BIN)/python tools/bench_prices.py

.PHONY: serve audit
serve: $(VENV)/.installed-service  ## Serve the same answers over HTTP and in a browser: http://127.0.0.1:8080/
	$(BIN)/planner serve

audit: $(VENV)/.installed-dev  ## Ask advisory feeds about every package; bill of materials into build/sbom.json
	$(BIN)/python tools/audit.py

help:  ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

clean:  ## Remove the virtual environment and every cache
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .grimp_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
