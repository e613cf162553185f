#!/usr/bin/env bash
# bench-instructions.sh   Instructions that a server (RL_SERVER, else the installed one) executes per request, all of it: to
# read the command, to carry it out with its replication record, to answer. Counted by valgrind, so that neither other
# programs nor the machine's speed matter. Fails if an allowed RL.TAKE costs more than 1.15 times a SET EX.
set -euo pipefail
cd "$(dirname "$0")/.."

module=$(realpath "${CARGO_TARGET_DIR:-target}/release/librl.so")
server=${RL_SERVER:-$(command -v redis-server || command -v valkey-server)}
cli=$(command -v redis-cli || command -v valkey-cli)
benchmark=$(command -v redis-benchmark || command -v valkey-benchmark)
work=$(mktemp -d)
trap 'kill "$(jobs -p)" 2>/dev/null || true; rm -rf "$work"' EXIT

arguments=()

# All instructions of a server that answers $1 requests of the command that follows. Its clockwork is slowed down (hz 1), as
# what the server does of its own accord takes longer the longer the run.
instructions() { # REQUESTS COMMAND...
  local requests=$1 out=$work/callgrind.out
  shift
  valgrind --tool=callgrind --callgrind-out-file="$out" "$server" --port 0 --unixsocket "$work/socket" --dir "$work" \
    --save '' --hz 1 --dynamic-hz no --loadmodule "$module" "${arguments[@]}" >"$work/log" 2>&1 &
  local pid=$!
  for _ in {1..300}; do
    "$cli" -s "$work/socket" PING >/dev/null 2>&1 && break
    sleep 0.1
  done
  "$benchmark" -s "$work/socket" -n "$requests" -c 1 -P 64 -q "$@" >/dev/null
  "$cli" -s "$work/socket" SHUTDOWN NOSAVE >/dev/null 2>&1 || true
  wait "$pid"
  sed -n 's/^\(summary\|totals\): *//p' "$out" | head -n 1
}

# What the start and the end cost is in both runs, and drops out.
per_request() { # COMMAND...
  local few=5120 many=25600
  echo $((($(instructions $many "$@") - $(instructions $few "$@")) / (many - few)))
}

"$server" --version
printf '%-28s %12s %10s\n' '' instructions 'to SET EX'
yardstick=$(per_request SET k v EX 100)
row() { # NAME COMMAND...
  local name=$1
  shift
  count=$(per_request "$@")
  awk -v name="$name" -v count="$count" -v yardstick="$yardstick" \
    'BEGIN { printf "%-28s %12d %10.3f\n", name, count, count / yardstick }'
}
printf '%-28s %12d %10.3f\n' 'SET k v EX 100' "$yardstick" 1
row 'PING' PING
row 'INCR k' INCR k
row 'RL.TAKE, allowed' RL.TAKE k 1000 1000000
allowed=$count
row 'RL.TAKE with cost, allowed' RL.TAKE k 1000 1000000 1
row 'RL.TAKE, denied' RL.TAKE k 1 1/d
row 'RL.WINDOW, allowed' RL.WINDOW k 100000 1h
row 'RL.WINDOW, denied' RL.WINDOW k 1 1h
row 'RL.COUNTER, allowed' RL.COUNTER k 100000 1h
row 'RL.QUOTA, allowed' RL.QUOTA k 100000 1d
arguments=(key-classes 100)
row 'RL.TAKE, key classes on' RL.TAKE login:ip:k 1000 1000000
arguments=()
row 'RL.TAKE, the same key, off' RL.TAKE login:ip:k 1000 1000000

if ((allowed * 100 > yardstick * 115)); then
  echo "an allowed RL.TAKE costs more than 1.15 times a SET EX" >&2
  exit 1
fi
