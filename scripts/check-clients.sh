#!/usr/bin/env bash
# check-clients.sh [FILE]   Runs every block of the section "Call it from your language" of FILE (README.md) as it
# stands there, but for the port, against a server with the module: once while the bucket has tokens, once when it is
# empty. A client that cannot be had is reported as skipped. RL_SERVER=PATH takes another server than the one in PATH,
# and JEDIS_CLASSPATH=JAR:... is where Jedis is, for the block in Java.
# shellcheck disable=SC2317  # prepare_CLIENT is called by a name made up at run time
set -euo pipefail
cd "$(dirname "$0")/.."

readme=$(realpath "${1:-README.md}")
section='## Call it from your language'
module=$(realpath "${CARGO_TARGET_DIR:-target}/release/librl.so")
# What the section's blocks ask for. Refilled so slowly that no compiler is slow enough to change an answer.
take=(RL.TAKE login:42 10 10/h)
longest_ms=360000 # one token of 10/h

work=$(mktemp -d)
server_pid=
stop() {
  trap '' HUP INT TERM
  if [ -n "$server_pid" ]; then
    kill -TERM "$server_pid" 2>/dev/null || true
    wait "$server_pid" 2>/dev/null || true
  fi
  rm -rf "$work"
}
trap stop EXIT
trap 'exit 1' HUP INT TERM

there() { command -v "$1" >/dev/null; }

ask() { "$cli" -p "$port" "$@"; }

start_server() {
  local server=${RL_SERVER:-$(command -v redis-server || command -v valkey-server)}
  cli=${server%-server}-cli
  until port=$((20000 + RANDOM % 10000)) && ! (: <>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do :; done
  # Both loopbacks, as by default: the blocks say localhost, and clients differ in which one that is.
  "$server" --bind 127.0.0.1 -::1 --port "$port" --dir "$work" --save '' --loadmodule "$module" >"$work/log" 2>&1 &
  server_pid=$!
  for _ in {1..100}; do
    [ "$(ask PING 2>/dev/null)" = PONG ] && return
    sleep 0.1
  done
  cat "$work/log" >&2
  echo "check-clients: the server did not start; its log stands above" >&2
  exit 1
}

# Writes block N of the section, with language tag TAG, to $work/blocks/N.TAG; N has two digits, to keep their order.
extract_blocks() {
  mkdir "$work/blocks"
  awk -v section="$section" -v dir="$work/blocks" '
    file && /^```/ { close(file); file = ""; next }
    file           { print > file; next }
    /^## /         { inside = $0 == section }
    inside && /^```/ { file = sprintf("%s/%02d.%s", dir, ++n, substr($0, 4)); printf "" > file }
  ' "$readme"
  if ! compgen -G "$work/blocks/*" >/dev/null; then
    echo "check-clients: there is no block under '$section' in $readme" >&2
    exit 1
  fi
}

skip() {
  reason=$1
  return 1
}

from_apt() { # PACKAGE...
  there apt-get || skip "not installed, and there is no apt-get" || return
  [ "$(id -u)" = 0 ] || skip "not installed; as root: apt-get install $*" || return
  {
    apt-get -qq update || true # the lists that are there may do
    DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$@"
  } >>"$work/install.log" 2>&1 || skip "apt-get could not install $*"
}

from_npm() { # PACKAGE
  { there npm && there node; } || skip "no node and npm" || return
  npm install --silent --no-audit --no-fund --prefix "$work/node" "$1" >>"$work/install.log" 2>&1 ||
    skip "npm could not install $1"
}

# Each prepare_CLIENT BLOCK gets the client, makes a program of the block, and sets `version` and `program`.

prepare_redis_cli() {
  there redis-cli || from_apt redis-tools || return
  version=$(redis-cli --version | cut -d ' ' -f 2)
  program=(bash "$1")
}

prepare_redis_py() {
  there python3 || skip "no python3" || return
  python3 -m venv "$work/venv" >>"$work/install.log" 2>&1 || skip "python3 cannot make a venv" || return
  "$work/venv/bin/pip" install -q redis >>"$work/install.log" 2>&1 || skip "pip could not install redis" || return
  version=$("$work/venv/bin/python" -c 'import redis; print(redis.__version__)')
  program=("$work/venv/bin/python" "$1")
}

prepare_node() { # PACKAGE BLOCK
  from_npm "$1" || return
  version=$(node -p 'require(process.argv[1]).version' "$work/node/node_modules/$1/package.json")
  # Imports are looked up beside the program; and an open connection would keep it from ending.
  (cat "$2" && echo 'process.exit();') >"$work/node/$1.mjs"
  program=(node "$work/node/$1.mjs")
}
prepare_node_redis() { prepare_node redis "$1"; }
prepare_ioredis() { prepare_node ioredis "$1"; }

prepare_redigo() {
  local package=golang-github-gomodule-redigo-dev
  { there go && [ -d /usr/share/gocode/src/github.com/gomodule/redigo ]; } || from_apt golang-go "$package" || return
  version=$(dpkg-query -W -f '${Version}' "$package")
  {
    printf 'package main\nimport ("fmt"; "log"; "github.com/gomodule/redigo/redis")\nfunc take() error {\n'
    cat "$1"
    printf 'return nil }\nfunc main() { if err := take(); err != nil { log.Fatal(err) } }\n'
  } >"$work/main.go"
  program=(env GO111MODULE=off "GOPATH=$work/go:/usr/share/gocode" go run "$work/main.go")
}

prepare_jedis() {
  [ -n "${JEDIS_CLASSPATH:-}" ] || skip "no Maven repository at hand; give JEDIS_CLASSPATH=JAR:..." || return
  there java || skip "no java" || return
  version=$(basename "${JEDIS_CLASSPATH%%:*}" .jar)
  {
    printf 'import java.util.List;\nimport redis.clients.jedis.Jedis;\n'
    printf 'class Main { public static void main(String[] args) {\n'
    cat "$1"
    printf '} }\n'
  } >"$work/Main.java"
  program=(java -cp "$JEDIS_CLASSPATH" "$work/Main.java")
}

prepare_redis_rb() {
  ruby -e 'require "redis"' 2>/dev/null || from_apt ruby-redis || return
  version=$(ruby -e 'require "redis"; puts Redis::VERSION')
  program=(ruby "$1")
}

prepare_phpredis() {
  php -r 'exit((int) !extension_loaded("redis"));' 2>/dev/null || from_apt php-cli php-redis || return
  version=$(php -r 'echo phpversion("redis");')
  (echo '<?php' && cat "$1") >"$work/take.php"
  program=(php "$work/take.php")
}

prepare_redis_rs() {
  local manifest=$work/rust/Cargo.toml
  there cargo || skip "no cargo" || return
  cargo init -q --vcs none --name take "$work/rust"
  { cargo add -q --manifest-path "$manifest" redis && cargo fetch -q --manifest-path "$manifest"; } \
    >>"$work/install.log" 2>&1 || skip "cargo could not get redis" || return
  version=$(cargo pkgid --manifest-path "$manifest" redis | sed 's/.*[#@]//')
  {
    echo '#![allow(unused_variables)] // a block names all five fields'
    echo 'fn main() -> Result<(), Box<dyn std::error::Error>> {'
    cat "$1"
    echo 'Ok(()) }'
  } >"$work/rust/src/main.rs"
  # Not the project's target directory, and not its profile: nothing here is measured.
  program=(cargo run -q --manifest-path "$manifest" --target-dir "$work/rust/target")
}

client_of() { # BLOCK
  case $1 in
    *.bash | *.sh) echo redis_cli ;;
    *.python) echo redis_py ;;
    *.js) if grep -q ioredis "$1"; then echo ioredis; else echo node_redis; fi ;;
    *.go) echo redigo ;;
    *.java) echo jedis ;;
    *.ruby) echo redis_rb ;;
    *.php) echo phpredis ;;
    *.rust) echo redis_rs ;;
    *) echo unknown ;;
  esac
}

run() {
  timeout 300 "${program[@]}" </dev/null 2>"$work/stderr" || {
    cat "$work/stderr" >&2
    return 1
  }
}

answers_as_documented() {
  local full empty
  ask FLUSHALL >/dev/null
  full=$(run) || return
  echo "  $full"
  [ "$full" = 'allowed, 9 left' ] || return
  # The block took from the bucket it shows, so this takes the rest and the next run is denied.
  ask "${take[@]}" 9 >/dev/null
  empty=$(run) || return
  echo "  $empty"
  [[ $empty =~ ^denied,\ retry\ in\ ([0-9]+)\ ms$ ]] && ((BASH_REMATCH[1] > 0 && BASH_REMATCH[1] <= longest_ms))
}

failed=0
summary=()
row() { # LANGUAGE CLIENT VERSION RESULT
  summary+=("$(printf '%-9s %-11s %-16s %s' "$@")")
}
row language client version result

start_server
extract_blocks
for block in "$work"/blocks/*; do
  language=${block##*.}
  client=$(client_of "$block")
  version=-
  echo "=== $language: $client"
  if [ "$client" = unknown ]; then
    result='FAIL: this script does not know how to run it'
  elif ! grep -q 6379 "$block"; then
    # It would ask whatever happens to listen on the default port.
    result='FAIL: it does not name the port 6379'
  else
    sed -i "s/6379/$port/g" "$block"
    if ! "prepare_$client" "$block"; then
      result="skipped: $reason"
    elif answers_as_documented; then
      result=ok
    else
      result=FAIL
    fi
  fi
  case $result in FAIL*) failed=1 ;; esac
  row "$language" "${client//_/-}" "$version" "$result"
done

echo
printf '%s\n' "${summary[@]}"
exit $failed
