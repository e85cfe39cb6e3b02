PYTHON ?= python3
BIN := .venv/bin
# Two workers: the tests are made for two cores; a larger machine may say JOBS=8.
JOBS ?= 2
SOAK_SECONDS ?= 600

.DEFAULT_GOAL := help
.PHONY: help install demo test check format bench soak clean

help: ## print what can be made
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

install: .venv/installed ## set up .venv with pinned versions and the ordercast command

demo: install ## five nodes lose one unit in ten: the run, its audit, and a picture of a small one
	@rm -rf demo && mkdir demo
	$(BIN)/ordercast simulate spo --nodes 5 --messages 200 --spread 0.5 --loss 0.1 --seed 7 --out demo/trace
	$(BIN)/ordercast audit demo/trace
	$(BIN)/ordercast simulate spo --nodes 3 --messages 2 --pattern talker --gap 100us \
		--fault "miss node=E3 source=E1 nth=1" --draw --svg demo/run.svg
	@echo "The picture of the last run is demo/run.svg"

test: install ## check and run all fast tests
	@$(BIN)/ruff format --check --quiet . && $(BIN)/ruff check --quiet . && $(BIN)/mypy
	@$(BIN)/pytest -n $(JOBS)

check: install ## format, lint and types only
	@$(BIN)/ruff format --check . && $(BIN)/ruff check . && $(BIN)/mypy

format: install ## rewrite the code in its one format
	@$(BIN)/ruff format . && $(BIN)/ruff check --fix .

bench: install ## measure; prints what it ran
	@$(BIN)/python benchmarks/simulator.py
	@$(BIN)/python benchmarks/st.py
	@$(BIN)/python benchmarks/priorities.py
	@$(BIN)/python benchmarks/sequencer.py
	@$(BIN)/python benchmarks/pipeline.py

soak: install ## thousands of random runs, SOAK_SECONDS long; and Spark clusters, killed in mid-job
	@SOAK_SECONDS=$(SOAK_SECONDS) $(BIN)/pytest -m "soak or cluster" -n $(JOBS) -s

clean: ## forget .venv and caches
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist

.venv/installed: requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "ordercast needs Python 3.11 or newer; say 'make PYTHON=python3.11 …'" >&2; exit 2; }
	@echo "setting up .venv (once) …"
	@$(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --disable-pip-version-check --requirement requirements.txt
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@
