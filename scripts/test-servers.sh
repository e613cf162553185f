#!/usr/bin/env bash
# test-servers.sh [all | NAME...]   Runs the server tests against the installed server, the newest Redis and the newest Valkey;
# with names (see servers.sh), against those; with `all`, against every one, and sees that one that is too old refuses the module
# and says why. A server that cannot be had is reported as skipped; where CI=true, that fails.
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

# A server that is too old for the module says so at its start, and does not come up.
refuses() { # NAME
  local server said
  echo
  echo "=== $1: has to refuse the module"
  if ! server=$(scripts/servers.sh "$1" 2>&1); then
    echo "$server"
    row "$1" - "skipped; ${server##*$'\n'}"
    if [ "${CI:-}" = true ]; then failed=1; fi
    return
  fi
  server=${server##*$'\n'}
  if said=$(timeout 20 "$server" --port 0 --unixsocket "$(mktemp -u)" --save '' --loadmodule "$RL_MODULE"); then
    failed=1
    row "$1" "$(version "$server")" "FAIL: it came up"
  elif grep 'librl needs Redis' <<<"$said"; then
    row "$1" "$(version "$server")" "refuses the module, and says why"
  else
    echo "$said"
    failed=1
    row "$1" "$(version "$server")" "FAIL: it does not say why it does not come up"
  fi
}

if [ "${1:-}" = all ]; then
  for name in redis-7.0 redis-7.4 redis-8.0 redis-8.2 redis-8.6 valkey-8.0 valkey-8.1 valkey-9; do
    run_first_of "$name"
  done
  refuses redis-6.2
elif [ $# -gt 0 ]; then
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
