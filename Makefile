# Two commands for a newcomer: `make demo` and `make test`. Both set everything up first.
# `make serve` runs an Agent for real use, with your own codex and its login.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
CACHE := $(or $(THREADGATE_TEST_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/threadgate)
LOCKLESS := 0.144.4
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
CODE := agent adapter transport generated clients

.PHONY: demo test faults serve setup format lint types mypy pyright contracts generated pytest clean

demo: setup
	$(BIN)/threadgate demo

serve: setup
	$(BIN)/threadgate serve

test: setup $(CACHE)/codex/$(LOCKLESS)/.installed
	$(MAKE) --no-print-directory -j2 lint mypy pyright contracts generated
	$(MAKE) --no-print-directory pytest

setup: $(STAMP)

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "threadgate needs Python 3.11 or newer: make PYTHON=/path/to/python3.11"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) \
		|| { echo "python3 -m venv failed: on Debian or Ubuntu, apt install python3-venv"; exit 1; }
	@echo "Setting up $(VENV) (some minutes the first time: the codex binary is 142 MB)"
	$(PIP) install -e '.[dev,codex]'
	@touch $@

# A codex that takes no thread locks: the promises about two writers are tested with it too.
$(CACHE)/codex/$(LOCKLESS)/.installed:
	@mkdir -p $(@D)
	$(PIP) install --no-deps --upgrade --target $(@D) openai-codex-cli-bin==$(LOCKLESS)
	@touch $@

format: setup
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	git grep -lw -e async -e trio -- "*.py" ":!tests" | xargs -n 64 -P 2 $(BIN)/flake8-async --disable=ASYNC114,ASYNC128,ASYNC9

types: mypy pyright

mypy: setup
	$(BIN)/mypy $(CODE) tests

pyright: setup
	$(BIN)/basedpyright

contracts: setup
	$(BIN)/lint-imports --no-logo

generated: setup
	$(BIN)/python -m generated.regenerate --check

pytest: setup
	$(BIN)/pytest -n 2

# Every row of docs/RELIABILITY.md, the long ones too.
faults: setup $(CACHE)/codex/$(LOCKLESS)/.installed
	$(BIN)/pytest -n 2 -o faulthandler_timeout=300 tests/faults -m "long or not long"

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
