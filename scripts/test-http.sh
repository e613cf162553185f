#!/usr/bin/env bash
# test-http.sh [TEST...]   Runs the tests of rl-tower and rl-service against the installed server, or the one in RL_SERVER.
set -euo pipefail
cd "$(dirname "$0")/.."

RL_MODULE=$(realpath "${CARGO_TARGET_DIR:-target}/release/librl.so")
export RL_MODULE
# Not optimised, unlike the arithmetic's own tests: here the compiler would take longer than the tests.
cargo test --profile dev --locked -p rl-tower -p rl-service --all-features -- "$@"
