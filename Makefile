# Commands for developers; `make help` lists them.

.DEFAULT_GOAL := help
.PHONY: help install docs run test test-fast test-cluster test-browser clients test-clients test-stripe check quality soak fuzz sdk lock translations sbom bench-read bench-ingest bench-start bench-write bench-feed bench-webhooks \
  bench-cluster bench-simulation bench-normalise accuracy header-weights bench-mail bench-images bench-matching bench-merges bench-usage bench-audit bench-exports bench-match-stage bench-tracing bench-oauth bench-sign-in bench-console bench-console-pages bench-demand bench-brand bench-publishing bench-licensed-reads bench-credits bench-assistant

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
# one more test process than cores, because tests often wait for servers
JOBS ?= $(shell expr $$(nproc 2>/dev/null || sysctl -n hw.ncpu) + 1)
SECONDS ?= 600
QUICK := not soak and not fuzz and not browser and not clients
CLUSTER_SUITES ?= tests/contract tests/flows tests/tenancy tests/http tests/regressions

help: ## List these commands.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-19s %s\n", $$1, $$2}' Makefile

install: $(STAMP) ## Create .venv with the command .venv/bin/joinery.

$(STAMP): pyproject.toml requirements-dev.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Joinery requires Python 3.11 or newer, but $(PYTHON) is $$($(PYTHON) --version 2>/dev/null || echo missing);" \
	    "select another version with: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/python || { echo "Creating .venv …"; $(PYTHON) -m venv .venv; }
	@echo "Installing Joinery and its packages …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@# with compiled modules every process starts half a second sooner, even if Python may not write bytecode
	@$(BIN)/python -m compileall -q -j 0 domain ports adapters connectors entrypoints
	@$(BIN)/python -m entrypoints.site.build
	@touch $@

docs: install ## Rebuild the pages under /docs, after a change in docs/ or in an operation.
	@$(BIN)/python -m entrypoints.site.build

run: install ## Start the whole service on this machine, with the demo.
	@exec $(BIN)/joinery up --demo

test: install ## Run all tests except the long ones.
	@env -u JOINERY_TEST_CITUS_URL $(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal -m "$(QUICK)" tests

test-fast: install ## Check the rules of the repository, and run the unit tests and those of every operation (a minute and a half).
	@env -u JOINERY_TEST_CITUS_URL $(BIN)/python -m pytest -q -n $(JOBS) --dist loadscope -m "$(QUICK) and not slow" tests/meta tests/unit tests/tenancy

test-cluster: install ## Run the tests for a Citus cluster on the cluster at JOINERY_TEST_CITUS_URL (docs/cluster.md; CLUSTER_SUITES).
	@test -n "$$JOINERY_TEST_CITUS_URL" || { echo "JOINERY_TEST_CITUS_URL is not set: docs/cluster.md explains how to build a cluster." >&2; exit 1; }
	@$(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile tests/citus --ignore tests/citus/test_node_failures.py
	@JOINERY_TEST_ON=citus $(BIN)/python -m pytest -q -n $(JOBS) -m "$(QUICK)" $(CLUSTER_SUITES)
	@# kills nodes, so no other test may run at the same time
	@$(BIN)/python -m pytest -q tests/citus/test_node_failures.py

test-browser: install ## Test the documentation site and the console in Chromium: axe, widths, keyboard (CHROMIUM=/usr/bin/chromium).
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,browser]'
	@$(BIN)/python -m pytest -q -rs -m browser $(ARGS) tests/browser

check: install ## Check style, types and import rules.
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --custom-compile-command 'make lock' $(ARGS)

translations: install ## Add new messages of the console to the catalogues of its languages, and remove unused ones.
	@$(BIN)/pybabel -q extract -F pyproject.toml --no-location --sort-output -o messages.pot entrypoints/console
	@$(BIN)/pybabel -q update -i messages.pot -d entrypoints/console/locale --no-fuzzy-matching --ignore-obsolete --no-wrap
	@rm messages.pot

lock: install ## Resolve the dependencies of pyproject.toml into the lock files (ARGS=--upgrade, ARGS='--upgrade-package quart').
	@$(LOCK) --extra otlp --output-file requirements.lock pyproject.toml
	@$(LOCK) --extra dev --constraints requirements.lock --output-file requirements-dev.lock pyproject.toml
	@echo setuptools | $(LOCK) --constraints requirements-dev.lock --output-file requirements-build.lock -
	@$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["docs"], sep="\n")' \
	  | $(LOCK) --constraints requirements-dev.lock --output-file requirements-docs.lock -

sbom: install ## Write the image's software bill of materials to dist/joinery.cdx.json (CycloneDX).
	@mkdir -p dist
	@PYTHONWARNINGS=ignore $(BIN)/cyclonedx-py requirements --pyproject pyproject.toml --mc-type application --output-reproducible \
	  --of JSON --output-file dist/joinery.cdx.json requirements.lock

sdk: install ## Build the wheel of joinery-sdk in dist/.
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && cp -R connectors/sdk "$$folder/sdk" && \
	  $(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps --wheel-dir dist "$$folder/sdk" && ls dist/joinery_sdk-*

clients: install ## Build the Python and TypeScript clients and the Postman collection in dist/.
	@$(BIN)/python -m entrypoints.clients.distribution dist

test-clients: install ## Test the clients, and clients from other generators, against a server (needs npm and java).
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,clients]'
	@$(BIN)/python -m pytest -q -m clients $(ARGS) tests/clients

test-stripe: install ## Test billing on a sandbox of Stripe, with test clocks (JOINERY_TEST_STRIPE_KEY=sk_test_…).
	@test -n "$$JOINERY_TEST_STRIPE_KEY" || { echo "JOINERY_TEST_STRIPE_KEY is not set: use the secret key of a sandbox of Stripe." >&2; exit 1; }
	@$(BIN)/python -m pytest -q -k sandbox $(ARGS) tests/contract/test_billing.py

quality: install ## Run the tasks of the assistant, and print a table (JOINERY_TEST_MODEL=openai:https://…/v1:name for a real model).
	@$(BIN)/python -m pytest -q $(ARGS) tests/quality

soak: install ## Run the long tests.
	@$(BIN)/python -m pytest -q -m soak tests

fuzz: install ## Test with random files and requests, ten minutes each (SECONDS=600, ARGS).
	@FUZZ_SECONDS=$(SECONDS) $(BIN)/python -m pytest -q -m fuzz $(ARGS) tests/fuzz

bench-read bench-ingest bench-start bench-write bench-feed bench-webhooks bench-cluster bench-simulation bench-normalise bench-mail bench-images bench-matching bench-merges bench-usage bench-audit bench-exports bench-tracing bench-oauth bench-console bench-demand bench-brand bench-publishing bench-credits bench-assistant: bench-%: install
	@$(BIN)/python -m benchmarks.$* $(ARGS)
accuracy: install ## Measure how many labelled headers and measures are read correctly (ARGS=FOLDER).
	@$(BIN)/python -m benchmarks.accuracy $(ARGS)
header-weights: install ## Compute the weights of header recognition from labelled headers (ARGS=further files).
	@$(BIN)/python -m benchmarks.header_weights $(ARGS)

bench-read: ## Measure the speed of reading lists and products.
bench-ingest: ## Measure the speed of imports.
bench-start: ## Measure the startup time.
bench-write: ## Measure the speed of writing changes.
bench-feed: ## Measure the cost of the event log, and check that readers miss no event.
bench-webhooks: ## Measure the speed of webhook deliveries.
bench-cluster: ## Compare the cost of a cluster with that of one PostgreSQL server.
bench-normalise: ## Measure the time of reading cells in the files of a folder (ARGS=folder).
bench-mail: ## Measure the speed of receiving mail, and its effect on the API.
bench-oauth: ## Compare the time of a request with an OAuth token and with an API key.
bench-sign-in: install ## Measure the cost of sign-ins, and their effect on API reads.
	@$(BIN)/python -m benchmarks.sign_in $(ARGS)
bench-tracing: ## Measure the cost of exporting traces for a request.
bench-simulation: ## Simulate placement, load and the relay of a cluster with ten thousand tenants.
bench-images: ## Measure the speed of converting images to WebP.
bench-match-stage: install ## Measure the time of matching after a run.
	@$(BIN)/python -m benchmarks.match_stage $(ARGS)
bench-matching: ## Measure the quality and speed of matching (ARGS=folders, or --generated 100000).
bench-exports: ## Compare the time of an export with that of copying the same bytes.
bench-merges: ## Measure the cost of merges, and of reading merged products.
bench-usage: ## Measure the cost of counting usage.
bench-credits: ## Measure how many spends of credit a second the ledger accepts.
bench-assistant: ## Measure the time that the service adds to a turn of the assistant, and the memory of open turns.
bench-demand: ## Measure how fast signals of demand are counted, and the release of a day.
bench-console: ## Measure the time of console pages, and of a search in 100,000 products.
bench-console-pages: install ## Measure the time of every console page for a large customer (ARGS=--every).
	@$(BIN)/python -m benchmarks.console_pages $(ARGS)
bench-publishing: ## Measure the effect of a publication on other organisations' reads.
bench-licensed-reads: install ## Compare lists of 50 licensed catalogues with those of one own catalogue.
	@$(BIN)/python -m benchmarks.licensed_reads $(ARGS)
bench-brand: ## Measure the filters of the vendor directory (ARGS=1000000: number of profiles).
bench-audit: ## Measure the cost of the audit log for a change, of an undo and of verification.
