#!/usr/bin/env bash
# serve.sh [PORT]   Builds rl-service and starts it on 127.0.0.1:PORT (8080), its admin page on the port after it, and stays until
# Ctrl-C. With REDIS=URL it uses that Redis, which needs librl; without, it starts one of its own, of which nothing is left
# behind. RULES=FILE names policies and rules, else those of service/rules.toml are used. RL_ADMIN_TOKEN is the admin
# page's token, else one is made.
set -euo pipefail
cd "$(dirname "$0")/.."

port=${1:-8080}
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
rules=${RULES:-service/rules.toml}

fail() {
  echo "serve: $1" >&2
  exit 1
}

if ! [[ $port =~ ^[1-9][0-9]{0,4}$ ]] || ((port > 65534)); then
  fail "HTTP_PORT must be a number from 1 to 65534, not '$port'"
fi
for taken in "$port" $((port + 1)); do
  if (: <>"/dev/tcp/127.0.0.1/$taken") 2>/dev/null; then
    fail "port $taken is taken. Choose others: make serve HTTP_PORT=$((port > 65000 ? 8180 : port + 100))"
  fi
done

scripts/setup.sh
cargo build --release --locked -p rl-service

data=$(mktemp -d)
server_pid='' service_pid=''
stop() {
  trap '' HUP INT TERM
  for pid in $service_pid $server_pid; do
    kill -TERM "$pid" 2>/dev/null || true
    wait "$pid" || true
  done
  rm -rf "$data"
}
trap stop EXIT
trap 'echo; echo "serve: stopped"; exit 0' HUP INT TERM

# Each in a process group of its own: Ctrl-C reaches this script alone, which stops them in order, the service first.
set -m
redis=${REDIS:-}
if [ -z "$redis" ]; then
  cargo build --release --locked
  server=${RL_SERVER:-$(command -v redis-server || command -v valkey-server)}
  redis="redis+unix://$data/socket"
  "$server" --port 0 --unixsocket "$data/socket" --dir "$data" --save '' --loadmodule "$target/release/librl.so" >"$data/log" 2>&1 &
  server_pid=$!
  for _ in {1..100}; do
    [ -S "$data/socket" ] && break
    kill -0 "$server_pid" 2>/dev/null || { cat "$data/log" >&2; fail "the server did not start"; }
    sleep 0.1
  done
fi

token=${RL_ADMIN_TOKEN:-$(od -An -N12 -tx1 /dev/urandom | tr -d ' \n')}
RL_ADMIN_TOKEN=$token "$target/release/rl-service" --listen "127.0.0.1:$port" --admin "127.0.0.1:$((port + 1))" \
  --rules "$rules" --redis "$redis" &
service_pid=$!
set +m
for _ in {1..100}; do
  (: <>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break
  kill -0 "$service_pid" 2>/dev/null || fail "the service did not start"
  sleep 0.1
done

cat <<EOF

rl-service on http://127.0.0.1:$port (see /openapi.json), rules from $rules

  curl -i http://127.0.0.1:$port/check -H 'content-type: application/json' -d '{"client":"user:42","policy":"login"}'

The admin page: http://127.0.0.1:$((port + 1)), token $token

Running until Ctrl-C.
EOF
ended=0
wait "$service_pid" || ended=$?
service_pid=
[ "$ended" = 0 ] || fail "the service ended with status $ended"
echo "serve: the service was stopped"
