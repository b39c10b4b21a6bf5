# Each target sets up what it needs in .venv; only Python >= 3.11, make and a package index are assumed.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
CONSTRAINTS := constraints.txt
# Two BLAS threads wait for one another on two cores; one is faster.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
DEMO ?= out/demo

.PHONY: help setup demo test test-mirror test-browser test-engines test-peers golden release check format lint types arch wheel

help: ## List the targets.
	@grep -E '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /\1\t/' | expand -t 16

$(VENV)/.ready: pyproject.toml $(CONSTRAINTS)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint $(CONSTRAINTS) --editable '.[local,fast,bench,llamacpp,dev]'
	touch $@

setup: $(VENV)/.ready ## Make .venv with everything that tests need.

demo: setup ## Build the samples' splits, show their diversity, measure the toy pair on them.
	$(BIN)/speedbench build demo --samples --out $(DEMO)
	$(BIN)/speedbench diversity $(DEMO)/full --plot $(DEMO)/diversity.png
	$(BIN)/speedbench bench demo --out $(DEMO)/bench
	@echo
	@echo "The rows:     $(DEMO)/full/data/qualitative.parquet   (dist/ is what would be published)"
	@echo "What was left out, and why:  $(DEMO)/ledger.parquet"
	@echo "The picture:  $(DEMO)/diversity.png"
	@echo "The measured figures (of a toy model):  $(DEMO)/bench/report.html"
	@echo "Next:         $(BIN)/speedbench sources list"
	@echo "              $(BIN)/speedbench audit run YOUR_TRAINING_DATA.jsonl --benchmark $(DEMO)/full --out out/audit"
	@echo "              $(BIN)/python -c 'import speedbench; print(speedbench.load(\"$(DEMO)/full\", \"qualitative\")[0])'"

test: setup ## Run every test that needs no other engine or environment.
	$(BIN)/python -m pytest --numprocesses 2 --dist loadgroup

test-mirror: setup ## Build v1-offline from the real records and check what came out (minutes).
	$(BIN)/python -m pytest -m heavy tests/mirror

test-engines: setup .venv-vllm/.ready ## Run vLLM on the CPU and transformers through our runner (installs 2.5 GB).
	SPEEDBENCH_VLLM_PYTHON=.venv-vllm/bin/python $(BIN)/python -m pytest -m engines tests/engines

test-peers: setup .venv-aiperf/.ready .venv-vllm/.ready .venv-sglang/.ready .venv-sglang057/.ready .venv-datasets36/.ready ## Run other projects' own code on our files (installs 4 GB).
	$(BIN)/python -m pip install --quiet --constraint $(CONSTRAINTS) --editable '.[ray]'
	SPEEDBENCH_AIPERF_PYTHON=.venv-aiperf/bin/python SPEEDBENCH_VLLM_PYTHON=.venv-vllm/bin/python \
		SPEEDBENCH_SGLANG_PYTHON=.venv-sglang/bin/python SPEEDBENCH_SGLANG057_PYTHON=.venv-sglang057/bin/python \
		SPEEDBENCH_DATASETS36_PYTHON=.venv-datasets36/bin/python \
		$(BIN)/python -m pytest -m peers

test-browser: setup ## Open the pages in headless chromium (installed by apt-get where it is absent, which needs root).
	command -v chromium >/dev/null || { apt-get update && apt-get install --yes --no-install-recommends chromium; }
	$(BIN)/python -m pytest -m browser tests/browser

golden: setup ## Write the golden files of the card anew; read the difference before you commit it.
	$(BIN)/python -m tests.cards.golden_files

# An environment of another project's own, as its list of pins says.
.venv-%/.ready: tests/peers/%.txt
	$(PYTHON) -m venv .venv-$*
	.venv-$*/bin/python -m pip install --quiet --no-deps --requirement $<
	touch $@

RECIPE ?= v1
OUT ?= out/$(RECIPE)

# Checked first, since a build takes hours: token and its right, version, terms of the sources, pins, key.
release: setup ## Build, verify and push: REPO=org/name VERSION=x.y.z [RECIPE=v1 OUT=out/v1]; DRY_RUN=1 only says what stands in the way.
	@test -n "$(REPO)" -a -n "$(VERSION)" || { echo "usage: make release REPO=org/name VERSION=x.y.z [DRY_RUN=1]" >&2; exit 2; }
ifeq ($(DRY_RUN),1)
	$(BIN)/speedbench release $(OUT)/dist --repo $(REPO) --version $(VERSION) --dry-run
else
	$(BIN)/speedbench release $(OUT)/dist --repo $(REPO) --version $(VERSION) --before-build $(RECIPE)
	$(BIN)/speedbench build $(RECIPE) --out $(OUT)
	$(BIN)/speedbench verify $(OUT)/dist
	$(BIN)/speedbench release $(OUT)/dist --repo $(REPO) --version $(VERSION)
endif

check: lint types arch test ## Format, lint, types, import contracts and tests.

format: setup ## Mend format and lint.
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: setup ## Check format and lint.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: setup ## Check types, strictly.
	$(BIN)/mypy

arch: setup ## Check the import contracts.
	$(BIN)/lint-imports

wheel: setup ## Build the wheel, as a check of the packaging.
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist-wheel .
