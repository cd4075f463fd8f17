# Every target sets up .venv by itself; all it needs is make and Python 3.11 or newer.
# PYTHON=python3.12 names the interpreter, ARGS=… goes to the program that a target runs.

BIN := .venv/bin
STAMP := .venv/.installed
DOCS_STAMP := .venv/.docs-installed
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-lowest test-newest check format docs soak bench guard eval setup clean FORCE

help: ## Show this list
	@echo "afresh: keeps a searchable knowledge base of documentation fresh"
	@echo
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1	\2/p' $(MAKEFILE_LIST) | expand -t 18

demo: $(STAMP) ## Crawl, change, refresh and search a small site on this machine
	@$(BIN)/afresh demo $(ARGS)

# One file of tests goes to one process, so that it makes what its tests share once.
PYTEST = PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

test: $(STAMP) ## Test every package on SQLite, in about 3 minutes
	@$(BIN)/python -m compileall -q -j 0 src
	@$(PYTEST) -m "not slow" --hypothesis-profile=quick $(ARGS)
	@echo "Left out: what is marked slow (PostgreSQL, browsers, kills, whole sites). Run everything: make test-all"

test-all: $(STAMP) $(DOCS_STAMP) ## Run every test, as CI does
	@sh scripts/browser.sh
	@$(BIN)/python -m compileall -q -j 0 src
	@$(PYTEST) $(ARGS)

test-lowest: $(STAMP) ## Demo and some tests with the lowest versions that pyproject.toml allows
	@sh scripts/smoke.sh lowest $(ARGS)

test-newest: $(STAMP) ## Demo and some tests on the newest Python of this machine
	@sh scripts/smoke.sh newest $(ARGS)

check: $(STAMP) ## Lint, formatting, types, import contracts, retired names, faults, docs; report the shape of the code
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/retired_names.py
	$(BIN)/python scripts/report_shape.py
	$(BIN)/python scripts/fault_table.py --check
	$(BIN)/python scripts/reference.py --check
	$(BIN)/python -m pytest -q tests/project/test_docs.py

docs: $(DOCS_STAMP) ## Build the documentation site into build/site
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet $(ARGS)
	@echo "Open build/site/index.html, or serve it: $(BIN)/python -m http.server -d build/site"

format: $(STAMP) ## Format the code and repair what lint can repair
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

soak: $(STAMP) ## Long tests of kills, memory and locks: make soak ARGS=kills
	@$(BIN)/python -m soak $(ARGS)

PEERS ?= 1
bench: $(STAMP) ## Measure against the bare loop and Scrapy, write bench/results.json; PEERS= leaves Scrapy out
	@$(BIN)/python -m bench $(if $(PEERS),--peers) $(ARGS)

guard: $(STAMP) ## Fail if a small crawl takes more work than pinned; ARGS=--pin pins what it takes now
	@$(BIN)/python -m bench.guard $(ARGS)

eval: $(STAMP) ## Score search and link scores on labelled sets: make eval ARGS="--worst 10"
	@$(BIN)/python -m eval $(ARGS)

setup: $(STAMP) ## Only make .venv

clean: ## Remove .venv and everything that was built
	rm -rf .venv bench/work build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A clone that was moved has to be installed again.
ifneq ($(shell cat $(STAMP) 2>/dev/null),$(CURDIR))
$(STAMP): FORCE
endif

$(STAMP): pyproject.toml constraints.txt scripts/setup.sh
	@PYTHON="$(PYTHON)" sh scripts/setup.sh

$(DOCS_STAMP): $(STAMP)
	@sh scripts/setup.sh --group docs
	@touch $@
