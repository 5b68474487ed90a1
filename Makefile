# `make demo` and `make test` work on a fresh machine: they set up .venv first.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-fast lint format types bench clean

demo: .venv/ready
	$(BIN)/rightly demo

test: .venv/ready
	$(BIN)/python -m pytest -q -n 2

test-fast: .venv/ready
	$(BIN)/python -m pytest -q -n 2 -m "not slow"

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: .venv/ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: .venv/ready
	$(BIN)/mypy

bench: .venv/ready
	$(BIN)/python benchmarks/speed.py

# torch comes first and pinned: see constraints.txt.
.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -q -c constraints.txt torch
	$(BIN)/pip install -q -c constraints.txt -e ".[dev]"
	touch $@

clean:
	rm -rf .venv build dist
