# `make demo` and `make test` need Python 3.11+, make and git; everything else they install into .venv.
# `make conformance` and `make peers` need npm, too; what they install goes into build/conformance.
PYTHON ?= python3
BIN := .venv/bin
EXTRA ?= dev
SUITE := build/conformance

.PHONY: demo test coverage conformance peers lint format screenshots clean
.DEFAULT_GOAL := demo

# Two environments in one folder: `demo` installs the program, `test` adds the development tools.
.venv/.demo: pyproject.toml constraints.txt
	@./.ci/setup $(PYTHON) .
	@touch $@

.venv/.dev: pyproject.toml constraints.txt
	@./.ci/setup $(PYTHON) '.[dev]'
	@touch $@ .venv/.demo

demo: .venv/.demo
	$(BIN)/taskinbox demo

# Every test once; those of mcp_client by themselves, since they alone have to reach every branch of it.
test: coverage
	$(BIN)/python -m pytest -n 2 --dist loadgroup --ignore=tests/mcp_client

coverage: .venv/.dev
	$(BIN)/python -m pytest -n 2 tests/mcp_client --cov

$(SUITE)/.installed: tests/conformance/setup tests/conformance/package.json tests/conformance/package-lock.json
	@tests/conformance/setup $(SUITE)
	@touch $@

conformance: .venv/.dev $(SUITE)/.installed
	@PYTHONPATH=tests $(BIN)/python -m conformance.run $(SUITE)

peers: .venv/.dev $(SUITE)/.installed
	@PYTHONPATH=tests $(BIN)/python -m conformance.peers $(SUITE)

lint: .venv/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

screenshots: .venv/.dev
	$(BIN)/python screenshots/make.py

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis $(SUITE)
