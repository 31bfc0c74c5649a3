# Everything sets itself up: a virtual environment, and Debian packages through apt (as root or by sudo).
# `make help` lists the targets.

SHELL := /bin/bash
.DEFAULT_GOAL := help
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/pytest
# `all`: a test that is skipped because a program or permission is missing is a failure
export REQUIRE
# of the demo: at native speed, and by real firmware in QEMU
WORKERS ?= 1
QEMU_WORKERS ?= 1
# network namespaces, DHCP and image building need root
AS_ROOT := $(shell [ "$$(id -u)" = 0 ] || echo sudo -n)
# a checkout that was copied or moved needs its environment anew: paths of the old place are in it
SETUP_STAMP := $(VENV)/.ironbell-setup-$(firstword $(shell echo '$(CURDIR)' | cksum))

# what somebody who asked for the set-up alone types next
NEXT_STEPS = 'Ironbell is set up. What to type next:' \
	'  export PATH="$(CURDIR)/$(BIN):$$PATH"' \
	'  ironbell --help    \# the commands' \
	'  make demo          \# a cluster of virtual servers, from power-off to Ready nodes'

.PHONY: help setup packages lint check test unit integration compat acceptance conformance real e2e e2e-kubeadm demo demo-machine demo-bios docs surface bench soak fuzz osie image clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(SETUP_STAMP) ## Make .venv with the package, its console script and the test tools
	@$(if $(filter setup,$(MAKECMDGOALS)),printf '%s\n' $(NEXT_STEPS),:)

$(SETUP_STAMP): constraints.txt pyproject.toml tools/setup.sh
	@tools/setup.sh $(VENV)
	@touch $@

packages: ## Install the Debian packages that machines, images and peers need (root or sudo)
	@tools/packages.sh

lint: setup ## ruff, mypy --strict, import-linter, words
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/words.py --clean

test: setup packages lint ## Everything that every change must pass, in two processes (REQUIRE=all: with nothing skipped, as in CI)
	tools/test.sh

check: setup ## Lint, types and pure tests, after each edit: less than three minutes
	tools/check.sh

unit: setup ## Pure tests only
	$(PYTEST) -q tests/unit

integration: setup packages ## Real sockets, SQLite, kubectl, peers
	$(PYTEST) -q tests/integration

compat: setup ## Upstream schemas, manifests and clients
	$(PYTEST) -q tests/compat

acceptance: setup packages ## What the first seed promises, claim by claim (docs/reference/claims.md)
	$(PYTEST) -q tests/acceptance

conformance: setup ## One suite against the embedded API and a real kube-apiserver
	$(PYTEST) -q tests/conformance

real: setup ## Build Kubernetes and etcd from their Go modules, as peers for tests (the user's cache keeps them)
	PYTHONPATH=tests $(BIN)/python -m support.programs.catalog

e2e: setup packages ## QEMU machines that netboot and install
	$(PYTEST) -q -m "not kubeadm" tests/e2e

e2e-kubeadm: setup packages ## A real cluster of five nodes: scaled, mended when machines die, upgraded by a minor version
	$(PYTEST) -q -s -m kubeadm tests/e2e

demo: setup packages ## Powered-off servers to a Kubernetes cluster, scaled down and wiped (WORKERS=n QEMU_WORKERS=n)
	$(AS_ROOT) $(BIN)/ironbell demo --workers $(WORKERS) --qemu-workers $(QEMU_WORKERS)

demo-machine: setup packages ## One server from power-off to installed operating system, UEFI firmware
	$(AS_ROOT) $(BIN)/ironbell demo --machine --firmware uefi

demo-bios: setup packages ## The same with BIOS firmware
	$(AS_ROOT) $(BIN)/ironbell demo --machine --firmware bios

docs: setup ## Write the generated pages of docs/reference again
	$(BIN)/python tools/docs.py

surface: setup ## Compare what this checkout offers to its users with another checkout (BEFORE=path)
	@test -n '$(BEFORE)' || { echo 'make surface: BEFORE=path is missing: name the checkout to compare with' >&2; exit 2; }
	$(BIN)/python tools/surface.py compare '$(BEFORE)' .

bench: setup packages ## Benchmarks against peers; prints ratios
	tools/bench.sh

soak: setup packages ## The long tests in full
	tools/test.sh --soak

fuzz: setup ## Fuzz what reads bytes from the network until nothing new is reached; takes hours
	$(BIN)/python -m tests.fuzz all

osie: setup packages ## Build the in-memory OS
	$(AS_ROOT) $(BIN)/ironbell osie build --if-changed

image: setup packages ## Build the demo's disk image
	$(AS_ROOT) $(BIN)/ironbell image build --if-changed

clean: ## Remove what was built here (not the user's cache folder)
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} +
