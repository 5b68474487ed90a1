# `make demo` and `make test` work on a fresh machine: they set up .venv first.
PYTHON ?= python3
BIN := .venv/bin

# Other people's libraries that test-libraries installs; the last three without what they ask for.
LIBRARIES := huggingface_hub pyyaml transformers datasets pandas polars duckdb accelerate evaluate \
	lightning mlflow-skinny
ALONE := torchvision==0.28.0 timm triton

# On both cores, a thread in each process. The slowest tests are told; a test that hangs ends at the
# timeout of pyproject.toml.
test test-long test-libraries test-lowest: export OMP_NUM_THREADS := 1
PYTEST := -m pytest -q -n 2 --dist worksteal --durations=15

.PHONY: demo test test-all test-long test-libraries test-lowest fuzz fuzz-new browser lint format types docs \
	wheel bench pins clean

demo: .venv/ready
	$(BIN)/rightly demo

test: .venv/ready browser
	$(BIN)/python $(PYTEST) -m "not long"

# Everything else, one after the other; what is left out of `make test` comes last.
test-all:
	$(MAKE) fuzz
	$(MAKE) test-libraries
	$(MAKE) test-lowest
	$(MAKE) test-long

# Each method and setting, not one of a kind; kills, clusters, examples; the benchmarks' own tests.
test-long: .venv/ready browser
	$(BIN)/python $(PYTEST) -m long

# What only runs beside other people's libraries, in an environment of its own: PyPI's torchvision
# is a CUDA build whose import fails beside this torch and breaks others (the tests repair that).
test-libraries: .venv-libraries/ready
	.venv-libraries/bin/python $(PYTEST) --dist loadgroup tests/classifiers tests/datasets tests/predictions \
		tests/collection/test_distributed_with_ray.py tests/cli/test_options.py tests/test_examples.py \
		tests/deployment/test_training.py tests/reporting/test_trackers.py tests/metrics/test_torchmetrics.py \
		tests/calibrators/solvers/test_triton_kernels.py

# The lowest versions of all dependencies: what reads, writes, computes and draws with them. Shapes
# are not checked here: jaxtyping's oldest plugin for pytest cannot.
test-lowest: .venv-lowest/ready
	.venv-lowest/bin/python $(PYTEST) -o addopts= -m "not long" \
		-W ignore::DeprecationWarning -W ignore::PendingDeprecationWarning tests/predictions tests/metrics \
		tests/calibrators/test_contract.py tests/calibrators/test_serialization.py tests/datasets \
		tests/decisions tests/classifiers tests/deployment tests/serving tests/reporting tests/cli \
		tests/collection

# Damaged and forged files for every reader, as many of 20,000 as ten minutes for all allow: the same
# ones each time, so that a change is judged by what it changes; `make fuzz-new` looks where nobody has.
fuzz: .venv/ready
	$(BIN)/python -m tests.fuzz --minutes 10 --jobs 2 --mutations 20000 --seed 78

fuzz-new: .venv/ready
	$(BIN)/python -m tests.fuzz --minutes 10 --jobs 2 --seed "$$(git rev-parse --short HEAD || echo 0)"

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

# Source archive and wheel, into dist/; both are tried out in empty environments, as people get them.
wheel: .venv/ready
	rm -rf dist build
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m build -q
	.ci/check-serve dist/*.whl
	.ci/check-wheel dist/*.whl

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
	.venv-libraries/bin/pip install -q -c constraints.txt -e ".[dev,ray]" $(LIBRARIES)
	.venv-libraries/bin/pip install -q -c constraints.txt --no-deps $(ALONE)
	touch $@

# Everything but torch at the lowest version that pyproject.toml allows.
.venv-lowest/ready: pyproject.toml constraints.txt .ci/list-lowest
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/pip install -q -c constraints.txt torch
	.venv-lowest/bin/python .ci/list-lowest > .venv-lowest/lowest.txt
	.venv-lowest/bin/pip install -q -r .venv-lowest/lowest.txt torch==$$(.venv-lowest/bin/python \
		-c "import importlib.metadata as m; print(m.version('torch'))")
	.venv-lowest/bin/pip install -q --no-deps -e .
	touch $@

# Writes constraints.txt anew: the newest versions of all that the environments above hold.
pins:
	$(PYTHON) .ci/pin-versions $(LIBRARIES) $(ALONE)
	$(MAKE) .venv/ready
	$(BIN)/python .ci/list-serve > requirements-serve.txt

clean:
	rm -rf .venv .venv-libraries .venv-lowest build dist site
