# Fencepost. `make` alone prints this help.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.ready
RIE    := $(BIN)/aws-lambda-rie
SEEDS  ?= 2000
WORKERS ?= 4
SEED   ?=
SAM     := .cache/sam-venv/bin/sam
RUNTIME := .cache/runtime-venv/bin/python
MACHINE := $(if $(filter aarch64 arm64,$(shell uname -m)),arm64,x86_64)
STAGE        ?=
EXTRA        ?=
ARCHITECTURE ?= arm64
# The hash is new whenever anything that ships is: without it the alias would stay on the version before.
PARAMETERS = file://stages/$(STAGE).yaml Architecture=$(ARCHITECTURE) ReleaseHash=$$($(PYTHON) -m rig.release_hash) $(EXTRA)

.DEFAULT_GOAL := help
.PHONY: help setup demo drill test test-fast check format sim sam-check sam-local deploy bench bench-peers lock clean

help: ## print this help
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: $(STAMP) ## create the virtualenv and install everything (pinned, hashed)

$(STAMP): requirements/dev.txt requirements/rie.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Fencepost needs Python 3.11 or newer: make PYTHON=python3.13")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	$(BIN)/python -m rig.fetch_rie $(RIE)
	@touch $@

demo: setup ## deliver a file of notifications through overlapping real Lambda runtimes
	$(BIN)/python -m demo

test: setup ## the whole suite (embedded PostgreSQL unless DATABASE_URL is set), WORKERS at a time
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

drill: setup ## real runtimes killed, frozen and restarted under the worker (Linux)
	$(BIN)/python -m pytest tests/drills

test-fast: setup ## the parts without a database or a runtime
	$(BIN)/python -m pytest -m "not postgres and not runtime and not slow"

check: setup ## format, lint, types, template
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/cfn-lint template.yaml

format: setup ## rewrite the code in the house format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

sim: setup ## simulate SEEDS schedules from seed 0, or one: make sim SEED=17
	$(BIN)/python -m tests.simulation $(if $(SEED),--seed $(SEED),--seeds $(SEEDS))

$(SAM):
	$(PYTHON) -m venv .cache/sam-venv
	.cache/sam-venv/bin/pip install --quiet --disable-pip-version-check aws-sam-cli==1.170.0

# The managed runtime's interpreter, and what AWS puts beside it; all else must come out of the layers.
$(RUNTIME):
	python3.13 -m venv .cache/runtime-venv
	.cache/runtime-venv/bin/pip install --quiet --disable-pip-version-check $$(sed -nE 's/^((awslambdaric|boto3)==[^ ;]+).*/\1/p' requirements/dev.txt)

sam-check: setup $(SAM) $(RUNTIME) ## validate, build for this machine, and invoke what was built (needs python3.13 on PATH)
	SAM_CLI_TELEMETRY=0 $(SAM) validate --lint
	SAM_CLI_TELEMETRY=0 ARCHITECTURE=$(MACHINE) $(SAM) build --parameter-overrides Architecture=$(MACHINE)
	FENCEPOST_BUILT=.aws-sam/build FENCEPOST_RUNTIME_PYTHON=$(RUNTIME) FENCEPOST_SAM_PYTHON=$(dir $(SAM))python $(BIN)/python -m pytest tests/built

sam-local: setup $(SAM) ## every events/*.json in containers, judged (Docker, or root on Debian); one: ONLY=tick; with logs: LOGS=1
	$(BIN)/python -m rig.sam $(if $(ONLY),--only $(ONLY)) $(if $(LOGS),--logs)

deploy: $(SAM) ## build and deploy with stages/STAGE.yaml: make deploy STAGE=dev [EXTRA="NAME=VALUE"]
	@test -f "stages/$(STAGE).yaml" || { echo "make deploy STAGE=dev (or another of stages/*.yaml)"; exit 2; }
	SAM_CLI_TELEMETRY=0 ARCHITECTURE=$(ARCHITECTURE) $(SAM) build --config-env $(STAGE) --parameter-overrides $(PARAMETERS)
	SAM_CLI_TELEMETRY=0 $(SAM) deploy --config-env $(STAGE) --parameter-overrides $(PARAMETERS)

bench: setup ## measure; one subject: make bench ONLY=exchange; keep the tables: WRITE=1
	$(BIN)/python -m bench $(if $(ONLY),--only $(ONLY)) $(if $(WRITE),--write) $(BENCH)

bench-peers: setup ## install the other queues that `make bench ONLY=peers` measures
	$(BIN)/python -m bench.peer.install

lock: ## resolve requirements/*.in anew (needs uv on PATH)
	cd requirements && uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header dev.in -o dev.txt
	cd requirements && uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header layer.in -c dev.txt -o ../layers/dependencies/requirements.txt

clean: ## remove what was built
	rm -rf $(VENV) .cache .aws-sam
