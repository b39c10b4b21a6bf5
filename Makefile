# Each target sets up what it needs in .venv; only Python >= 3.11, make and a package index are assumed.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
CONSTRAINTS := constraints.txt
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: setup demo test check format lint types arch wheel clean

$(VENV)/.ready: pyproject.toml $(CONSTRAINTS)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -c $(CONSTRAINTS) -e '.[local,fast,bench,dev]'
	touch $@

setup: $(VENV)/.ready

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: setup
	$(BIN)/mypy

arch: setup
	$(BIN)/lint-imports

test: setup
	$(BIN)/python -m pytest -n 2

check: lint types arch test
