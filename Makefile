# `make demo` and `make test` work on a fresh machine: they set up .venv first.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-fast test-libraries browser lint format types docs bench clean

demo: .venv/ready
	$(BIN)/rightly demo

test: .venv/ready browser
	$(BIN)/python -m pytest -q -n 2

test-fast: .venv/ready browser
	$(BIN)/python -m pytest -q -n 2 -m "not slow"

# What only runs beside other people's libraries, in an environment of its own: PyPI's torchvision
# is a CUDA build whose import fails beside this torch and breaks others (the tests repair that).
test-libraries: .venv-libraries/ready
	.venv-libraries/bin/python -m pytest -q tests/classifiers tests/datasets tests/predictions \
		tests/collection tests/test_examples.py

# A real browser for the tests of pages, from Debian's packages.
browser:
	.ci/install-browser

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: .venv/ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: .venv/ready
	$(BIN)/mypy

# The site, into site/; it loads nothing from elsewhere and a warning is an error.
docs: .venv/ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

bench: .venv/ready
	$(BIN)/python -m benchmarks.speed.costs

# torch comes first and pinned: see constraints.txt.
.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -q -c constraints.txt torch
	$(BIN)/pip install -q -c constraints.txt -e ".[dev]"
	touch $@

.venv-libraries/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-libraries
	.venv-libraries/bin/pip install -q -c constraints.txt torch
	.venv-libraries/bin/pip install -q -c constraints.txt -e ".[dev,ray]" \
		huggingface_hub pyyaml transformers datasets pandas polars duckdb
	.venv-libraries/bin/pip install -q --no-deps torchvision==0.28.0 timm
	touch $@

clean:
	rm -rf .venv .venv-libraries build dist site
