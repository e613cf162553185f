#!/usr/bin/env bash
# bench.sh   Measures: the arithmetic alone, then RL.TAKE in a server (RL_SERVER, else the installed one) beside PING, INCR,
# SET EX and Lua: CPU time per request, then instructions per request.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --release --locked
RL_MODULE=$(realpath "${CARGO_TARGET_DIR:-target}/release/librl.so")
export RL_MODULE

echo "=== decisions, without a server"
cargo bench --locked -p rl-core
echo
echo "=== in a server: CPU time of its main thread"
cargo bench --locked --bench server
echo
echo "=== in a server: instructions"
scripts/bench-instructions.sh
