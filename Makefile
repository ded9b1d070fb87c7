# A fresh machine needs only Python 3.11 or newer and make.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PACKAGES := $(VENV)/.packages-installed
WEFT := $(VENV)/.weft-installed
ARCHIVE := $(VENV)/.archive-made
# One Spark session each; some work while others wait. WORKERS=0 runs all tests in one process.
WORKERS ?= 4
# The share of tests in tests/spark and tests/review that a run takes, drawn by its seed.
SHARE ?= 0.5
CODE := $(wildcard src tests experiments examples benchmarks)

# Compiled modules are kept: tests start many processes, each of which would compile all of them again.
export PYTHONDONTWRITEBYTECODE :=

LOCK := $(BIN)/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 \
	--generate-hashes --no-annotate --custom-compile-command "make lock"

.DEFAULT_GOAL := help
.PHONY: help setup java demo test test-all compiled lint format bench lock check-lock clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: java $(WEFT) $(ARCHIVE) ## prepare .venv, with the command at .venv/bin/weft

java:
	@scripts/ensure_java.sh

$(PACKAGES): requirements-dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "weft needs Python 3.11 or newer; set PYTHON=/path/to/python" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements-dev.txt
	@touch $@

$(WEFT): $(PACKAGES) pyproject.toml
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

# Spark starts sooner from an archive of its classes; without one everything works all the same.
$(ARCHIVE): $(PACKAGES) | java $(WEFT)
	@$(BIN)/python -m weft.runtime.api.class_archive || echo "no class archive; Spark starts without"
	@touch $@

demo: setup ## run window queries on an auction stream and fraud patterns on transfers
	$(BIN)/weft demo

test: setup ## lint, then run the tests; half of those in tests/spark and tests/review, others in every run
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target lint compiled
	WEFT_TEST_SHARE=$(SHARE) $(BIN)/pytest --numprocesses $(WORKERS) --dist worksteal --durations 25

test-all: ## the same with all tests
	@$(MAKE) --no-print-directory test SHARE=1

# Assertions of tests, modules and numba's loops are compiled once, and not by all workers at the same
# time. What fails here fails again in the tests, where it is told.
compiled: $(WEFT)
	@$(BIN)/pytest --collect-only -qq > $(VENV)/compiled 2>&1 || true
	@$(BIN)/pytest -qq tests/optimizer/placement/test_balanced.py tests/kernel/test_bounded_table.py > $(VENV)/compiled 2>&1 || true

lint: $(WEFT) check-lock ## ruff, mypy, import contracts
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(WEFT) ## fix what ruff can fix
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

bench: setup ## measure weft beside plain Spark
	$(BIN)/weft bench windows

lock: $(WEFT) ## pin the packages again; UPGRADE=--upgrade takes newer ones
	$(LOCK) $(UPGRADE) --output-file requirements.txt
	$(LOCK) $(UPGRADE) --extra dev --constraint requirements.txt --output-file requirements-dev.txt
	@$(MAKE) --no-print-directory check-lock

check-lock:
	@! grep -nE '://|--(extra-)?index-url|--find-links' requirements.txt requirements-dev.txt \
		|| { echo "requirements must not name a download address" >&2; exit 1; }

clean: ## remove .venv and all caches
	rm -rf $(VENV) build dist src/*.egg-info spark-warehouse metastore_db derby.log
	rm -rf .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
