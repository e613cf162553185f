#!/usr/bin/env bash
# run.sh [PORT]   Builds the module, starts a server with it on 127.0.0.1:PORT, shows the first answers and stays until
# Ctrl-C or SIGTERM. Nothing is saved and nothing is left behind. RL_SERVER=PATH takes another server than the one in PATH.
set -euo pipefail
cd "$(dirname "$0")/.."

port=${1:-6379}
module=$(realpath -m "${CARGO_TARGET_DIR:-target}/release/librl.so")

fail() {
  echo "run: $1" >&2
  exit 1
}

if ! [[ $port =~ ^[1-9][0-9]{0,4}$ ]] || ((port > 65535)); then
  fail "PORT must be a number from 1 to 65535, not '$port'"
fi
# Asked before the build, which takes minutes; and by bash alone, as there may be no client yet.
if (: <>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
  fail "port $port is taken. Choose another: make run PORT=$((port == 65535 ? 6380 : port + 1))"
fi

scripts/setup.sh
cargo build --release --locked

server=${RL_SERVER:-$(command -v redis-server || command -v valkey-server)}
cli=${server%-server}-cli
data=$(mktemp -d)
pid=
stop() {
  trap '' HUP INT TERM
  if [ -n "$pid" ]; then
    kill -TERM "$pid" 2>/dev/null || true
    wait "$pid" || true
  fi
  rm -rf "$data"
}
trap stop EXIT
trap 'echo; echo "run: stopped"; exit 0' HUP INT TERM

# In a process group of its own: Ctrl-C reaches this script alone, which then stops the server in order. Without that
# the server gets two signals at once and may take the second for impatience.
set -m
"$server" --bind 127.0.0.1 --port "$port" --dir "$data" --save '' --appendonly no \
  --loadmodule "$module" >"$data/log" 2>&1 &
pid=$!
set +m

broken() {
  cat "$data/log" >&2
  fail "$1; the server's log stands above"
}
ask() { "$cli" -p "$port" "$@" 2>/dev/null; }

for _ in {1..100}; do
  kill -0 "$pid" 2>/dev/null || broken "the server did not start"
  [ "$(ask PING)" = PONG ] && break
  sleep 0.1
done

echo
echo "$("$server" --version | sed -E 's/^(\S+) server v=(\S+) .*/\1 \2/') with librl on 127.0.0.1:$port"
echo
echo "A bucket of 10 tokens, refilled with 5 a second. The answers' five numbers (redis-cli prints one a line):"
echo "allowed, remaining, retry_after_ms, reset_after_ms, limit"
for call in 'RL.TAKE demo 10 5' 'RL.TAKE demo 10 5' 'RL.TAKE demo 10 5 9'; do
  # shellcheck disable=SC2086  # a command's words
  answer=$(ask $call | paste -sd ' ') || true
  printf '  %s -p %s %-20s ->  %s\n' "$(basename "$cli")" "$port" "$call" "$answer"
  [[ $answer =~ ^[01](\ -?[0-9]+){4}$ ]] || broken "that is not an answer of RL.TAKE"
done
echo
echo "Running until Ctrl-C."

ended=0
wait "$pid" || ended=$?
pid=
[ "$ended" = 0 ] || broken "the server ended with status $ended"
echo "run: the server was shut down"
