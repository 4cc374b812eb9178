# Two commands do everything, set-up included: `make train` and `make test`.
# Another Python gets an environment of its own: `make test PYTHON=python3.12` makes .venv-python3.12 beside .venv.
PYTHON ?= python3
VENV ?= .venv$(if $(filter command line,$(origin PYTHON)),-$(notdir $(PYTHON)))
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt

.DEFAULT_GOAL := help
.PHONY: help install install-dev train test test-all lint format docs speed tables evidence theory figures clean

help:  ## list the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

install: $(VENV)/.installed  ## make .venv with score-rl in it

$(VENV)/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || { \
	  echo "score-rl needs Python 3.11 to 3.13, and $(PYTHON) is $$($(PYTHON) --version). Try: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 2; }
	@echo "Setting up $(VENV) (once, about a minute) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --editable .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	@echo "Adding the test tools to $(VENV) (once) ..."
	@$(PIP) install --editable '.[dev]'
	@touch $@

install-dev: $(VENV)/.installed-dev  ## the same with the test tools

train: $(VENV)/.installed  ## train SCORE on the embedded default task and judge it (1 to 4 minutes on 2 cores)
	@$(BIN)/score train

test: $(VENV)/.installed-dev  ## formatter, linter, types and the fast tests; says how long it took
	@$(call timed,$(MAKE) --no-print-directory lint && $(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow")

test-all: $(VENV)/.installed-dev  ## the fast tests and the slow ones
	@$(call timed,$(MAKE) --no-print-directory lint && $(BIN)/python -m pytest -n 2 --dist loadfile)

# A command, and how long it took, whether it failed or not.
timed = began=$$(date +%s); { $(1); }; status=$$?; took=$$(($$(date +%s) - began)); \
  echo "make $@ took $$((took / 60)) min $$((took % 60)) s with $$($(BIN)/python --version)"; exit $$status

lint: $(VENV)/.installed-dev
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

format: $(VENV)/.installed-dev  ## let ruff format and repair
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

docs: $(VENV)/.installed-dev  ## the documentation site, in site/; a warning is an error
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "To read it: $(BIN)/python -m http.server -d site"

speed: $(VENV)/.installed-dev  ## how fast it is, beside PyTorch and d3rlpy (10 minutes on 2 cores)
	@$(PIP) install --editable '.[benchmark]'
	@$(PIP) install --no-deps d3rlpy==2.8.1
	@$(BIN)/python -m benchmarks.speed

tables: $(VENV)/.installed-dev  ## put the stored figures into the documents
	@$(BIN)/python -m benchmarks.speed.tables
	@$(BIN)/python -m benchmarks.judging.trust_tables
	@$(BIN)/python -m benchmarks.cluster.tables

evidence: $(VENV)/.installed-dev  ## put the stored scores beside the paper's: README's table and figure, docs/results.md
	@$(BIN)/python -m score_rl.paper.evidence

theory: $(VENV)/.installed-dev  ## run every study of the paper's theory and put what it finds into docs/theory.md (a minute)
	@$(BIN)/python -m score_rl.paper.evidence.theory_tour

figures: tables evidence theory  ## all three: every figure and table of the documents, from stored files and the studies

clean:  ## remove .venv and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache build dist site src/*.egg-info
