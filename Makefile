# Everything a user or CI does with librl. `make` alone prints this list.

PORT ?= 6379
HTTP_PORT ?= 8080
IMAGE ?= librl
BASE ?= redis:8
DOCKER_BUILD ?= docker build

# Cargo and the scripts have to agree on where the module lies, whatever the user's own cargo configuration says.
export CARGO_TARGET_DIR ?= $(CURDIR)/target
export DOCKER_BUILDKIT = 1

.DEFAULT_GOAL := help
.PHONY: help run serve build setup test test-core test-server test-http test-all test-valgrind test-asan test-faults soak fuzz fuzz-smoke servers lint check deny package bench bench-http clients image image-check clean

help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

run: ## Build, start a server with the module on 127.0.0.1:PORT (6379), show the first answers, stay until Ctrl-C
	@scripts/run.sh $(PORT)

serve: ## Start rl-service on 127.0.0.1:HTTP_PORT (8080) with a Redis of its own, or on REDIS=redis://..., with RULES=FILE
	@scripts/serve.sh $(HTTP_PORT)

build: setup ## Build the module: target/release/librl.so
	cargo build --release --locked

setup: ## Install what a build and a run need, if anything is missing (Debian, Ubuntu)
	@scripts/setup.sh

test: test-core test-server test-http ## Every test: the arithmetic, the module in every server below, the HTTP side

test-core: setup ## Test the arithmetic alone
	cargo test --locked -p rl-core

test-http: build ## Test rl-tower and rl-service, with real servers and the admin page in a real browser
	@scripts/setup.sh browser
	@scripts/test-http.sh

test-all: build ## Test the module in every server that can be fetched, old and new
	@scripts/setup.sh servers
	@scripts/test-servers.sh all

test-valgrind: build ## Test the module in the installed server under valgrind's memcheck
	@scripts/setup.sh bench
	@scripts/test-valgrind.sh

test-asan: setup ## Test the module under AddressSanitizer in SERVER=PATH, a server that was built with it
	@scripts/test-asan.sh $(SERVER)

test-faults: build ## Test what happens when processes die, links break, clocks jump and slots move, or SERVERS="NAME ..." (half an hour)
	@scripts/test-faults.sh $(SERVERS)

fuzz: build ## Run every fuzz target for a quarter of an hour (FUZZ_SECONDS)
	@scripts/fuzz.sh $(or $(FUZZ_SECONDS),900)

fuzz-smoke: build ## Run every fuzz target for ten seconds
	@scripts/fuzz.sh 10

soak: build ## Half an hour of everything at once, with restarts, a replica and the append-only file (RL_SOAK_SECONDS)
	RL_MODULE=$(CARGO_TARGET_DIR)/release/librl.so cargo test --release --locked --test faults soak -- --ignored --nocapture

test-server: build ## Test the module in the installed server, the newest Redis and the newest Valkey, or in SERVERS="NAME ..."
	@scripts/test-servers.sh $(SERVERS)

servers: ## Unpack other servers under target/servers, for the tests and for RL_SERVER=... make run; all, or SERVERS="NAME ..."
	@scripts/servers.sh $(SERVERS)

lint: setup ## Check formatting, clippy, the scripts and the Dockerfile
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-features --all-targets -- -D warnings
	@scripts/lint.sh

check: lint test ## lint and test: what a change has to pass

package: build ## Pack the module and the service with the licences of all that is in them: target/package
	cargo build --release --locked -p rl-service
	@scripts/package.sh

deny: ## Check licences, sources and known faults of the dependencies
	@scripts/deny.sh

bench-http: build ## Measure what the limiter costs an HTTP service, beside none and a Lua script
	@scripts/setup.sh bench
	RL_MODULE=$(CARGO_TARGET_DIR)/release/librl.so cargo bench --locked -p rl-service --bench http

bench: ## Measure the arithmetic and the module
	@scripts/setup.sh bench
	@scripts/bench.sh

clients: build ## Run the README's client snippets against a server, with each client that can be installed
	@scripts/check-clients.sh

image: ## Build the container image IMAGE (librl) on BASE (redis:8, or valkey/valkey:9)
	$(DOCKER_BUILD) --build-arg BASE=$(BASE) -t $(IMAGE) .

image-check: ## Build the image on Redis and on Valkey, run each and ask it (needs docker)
	@scripts/image-check/check.sh

clean: ## Remove everything built or fetched
	cargo clean
