PYTHON ?= python3
BIN := .venv/bin
# Four workers for two cores: many tests wait for timeouts. A larger machine may say JOBS=8.
JOBS ?= 4
SOAK_SECONDS ?= 600
MUTANTS_JSON ?= build/mutants.jsonl

.DEFAULT_GOAL := help
.PHONY: help install demo docs test check format bench compiled soak mutants clean

help: ## print what can be made
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

install: .venv/installed ## set up .venv with pinned versions and the ordercast command

demo: install ## every protocol under loss on an embedded Spark: sweep, audit, figures, one page; a live group into a table
	@rm -rf demo && mkdir demo
	$(BIN)/ordercast sweep examples/demo.toml --out demo/trace
	$(BIN)/ordercast evaluate --quick --out demo/evaluation
	$(BIN)/ordercast audit demo/trace --json demo/verdict.json
	$(BIN)/ordercast report demo/evaluation --verdict demo/verdict.json
	$(BIN)/python examples/stream_table.py

docs: install ## the documentation as a site that opens without a network: site/index.html
	@$(BIN)/python docs/reference_pages.py
	@$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going -j auto -d build/doctrees docs site
	@echo "site/index.html"

# Empty: tests start hundreds of Python processes, and each would compile what it imports.
# Tests are collected once, which compiles them for all workers; mypy has the other core, and what tests that wait leave.
test: export PYTHONDONTWRITEBYTECODE =
test: install ## check and run all fast tests
	@$(BIN)/ruff format --check --quiet . && $(BIN)/ruff check --quiet .
	@$(BIN)/mypy & types=$$!; $(BIN)/pytest --collect-only -qq >/dev/null 2>&1; \
		$(BIN)/pytest -n $(JOBS) --durations=15; tests=$$?; wait $$types && exit $$tests

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
	@$(BIN)/python benchmarks/audit.py
	@$(BIN)/python benchmarks/wire.py
	@$(BIN)/python benchmarks/explorer.py
	@$(BIN)/python benchmarks/log.py

compiled: install ## compile the machines with a C compiler, as a wheel in dist/ and to try it in build/compiled
	@rm -rf build/compiled && mkdir -p build
	HATCH_BUILD_HOOK_ENABLE_CUSTOM=true $(BIN)/python -m hatchling build -t wheel -d build/wheel
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --target build/compiled build/wheel/*.whl
	@mkdir -p dist && mv build/wheel/*.whl dist/
	@PYTHONPATH=build/compiled $(BIN)/ordercast --version
	@echo "PYTHONPATH=build/compiled runs it; ORDERCAST_PURE=1 beside it runs the sources"

soak: install ## random runs on Spark for SOAK_SECONDS, then the tests that take long, clusters killed in mid-job among them
	$(BIN)/ordercast soak --seconds $(SOAK_SECONDS) --first $$(date +%s) --out soak/$$(date +%Y%m%d-%H%M%S)
	@SOAK_SECONDS=$(SOAK_SECONDS) $(BIN)/pytest -m "soak or cluster" -n $(JOBS) -s

# Hours: it goes on where it was ended, as far as the code is the same. MUTANTS_JSON=other.jsonl begins anew.
mutants: install ## break our own code on purpose, rule by rule and then systematically, and see which test notices
	@mkdir -p $(dir $(MUTANTS_JSON))
	@$(BIN)/python -m tests.mutations --json $(MUTANTS_JSON).semantic --resume; semantic=$$?; \
		$(BIN)/python -m tests.mutations --systematic --json $(MUTANTS_JSON) --resume && exit $$semantic

clean: ## forget .venv and caches
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist site docs/project docs/reference/api

.venv/installed: requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "ordercast needs Python 3.11 or newer; say 'make PYTHON=python3.11 …'" >&2; exit 2; }
	@echo "setting up .venv (once) …"
	@$(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --disable-pip-version-check --requirement requirements.txt
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@
