#!/usr/bin/env bash
# test-servers.sh [NAME...]   Runs the server tests against the installed server, the newest Redis and the newest Valkey; with
# names (see servers.sh), against those. A server that cannot be had is reported as skipped; where CI=true, that fails.
set -euo pipefail
cd "$(dirname "$0")/.."

RL_MODULE=$(realpath "${CARGO_TARGET_DIR:-target}/release/librl.so")
export RL_MODULE
# Compiled once, ahead of the servers: tests that do not compile have failed nowhere in particular.
cargo test --release --locked --test server --no-run

failed=0
summary=()
row() { # NAME VERSION RESULT
  summary+=("$(printf '%-12s %-9s %s' "$1" "$2" "$3")")
}
row server version result

version() { "$1" --version | sed -E 's/.* v=(\S+).*/\1/'; }

run_tests() { # NAME PATH [NOTE]
  echo
  echo "=== $1: $2"
  if RL_SERVER=$2 RL_SERVER_NAME=$1 cargo test --release --locked --test server; then
    row "$1" "$(version "$2")" "pass${3:-}"
  else
    row "$1" "$(version "$2")" "FAIL${3:-}"
    failed=1
  fi
}

# The first of the named servers that can be had; the others' names and reasons go into its row.
run_first_of() { # NAME...
  local name said reasons=''
  for name in "$@"; do
    echo
    echo "=== $name: looking for it"
    # the last line is the server's path or the reason why there is none
    if said=$(scripts/servers.sh "$name" 2>&1); then
      run_tests "$name" "${said##*$'\n'}" "$reasons"
      return
    fi
    echo "$said"
    reasons+="; ${said##*$'\n'}"
  done
  if [ "${CI:-}" = true ]; then
    failed=1
    row "$1" - "SKIPPED, which is a failure where CI=true$reasons"
  else
    row "$1" - "skipped$reasons"
  fi
}

if [ $# -gt 0 ]; then
  for name in "$@"; do run_first_of "$name"; done
else
  installed=$(realpath -s "$(command -v redis-server || command -v valkey-server)")
  run_tests installed "$installed"
  run_first_of redis-8.6 redis-8.0
  run_first_of valkey-9 valkey-8.1 valkey-8.0
fi

echo
printf '%s\n' "${summary[@]}"
exit $failed
