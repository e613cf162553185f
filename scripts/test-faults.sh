#!/usr/bin/env bash
# test-faults.sh [NAME...]   Runs the tests of faults (tests/faults), which take minutes, against the installed server, or against
# servers by name (see servers.sh). RL_ROUNDS sets how often what is repeated is repeated.
set -euo pipefail
cd "$(dirname "$0")/.."

RL_MODULE=$(realpath "${CARGO_TARGET_DIR:-target}/release/librl.so")
export RL_MODULE
cargo test --release --locked --test faults --no-run
failed=0
for name in "${@:-installed}"; do
  if [ "$name" = installed ]; then
    server=$(realpath -s "$(command -v redis-server || command -v valkey-server)")
  else
    server=$(scripts/servers.sh "$name" | tail -n 1)
  fi
  echo
  echo "=== $name: $server"
  # One at a time: each has all of the machine for its load.
  RL_SERVER=$server cargo test --release --locked --test faults -- --test-threads 1 --nocapture || failed=1
done
exit $failed
