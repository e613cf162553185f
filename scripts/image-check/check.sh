#!/usr/bin/env bash
# check.sh   Builds the image on Redis and on Valkey, runs each with flags of the user's, and asks it as a user would.
# An official image that cannot be pulled is replaced by a stand-in of Debian's packages, and the output says so: that
# proves the Dockerfile's steps, not the published image.
set -euo pipefail
cd "$(dirname "$0")/../.."

port=${PORT:-7896}
container=
trap '[ -z "$container" ] || docker rm -f "$container" >/dev/null' EXIT
trap 'exit 1' HUP INT TERM

fail() {
  echo "image-check: $1" >&2
  [ -z "$container" ] || docker logs "$container" 2>&1 | tail -n 20 >&2
  exit 1
}

base_for() { # FLAVOUR OFFICIAL-IMAGE
  if docker pull -q "$2" >/dev/null 2>&1; then
    base=$2
  else
    base=librl-check-base:$1
    docker build -q --network host --build-arg FLAVOUR="$1" -t "$base" scripts/image-check >/dev/null
    echo "$2 cannot be pulled: a stand-in of Debian's $1-server takes its place"
  fi
}

health() { docker inspect -f '{{.State.Health.Status}}' "$container"; }
ask() { docker exec "$container" "$cli" -p "$port" "$@"; }

check() { # FLAVOUR OFFICIAL-IMAGE
  local base image=librl-check:$1 cli=$1-cli answer uid
  echo "--- $2"
  base_for "$1" "$2"
  echo "building the image on $base"
  docker build -q --network host --build-arg BASE="$base" -t "$image" . >/dev/null
  container=$(docker run -d --network host "$image" --bind 127.0.0.1 --port "$port")

  for _ in {1..60}; do
    [ "$(health)" = healthy ] && break
    sleep 0.5
  done
  [ "$(health)" = healthy ] || fail "not healthy: $(docker inspect -f '{{json .State.Health.Log}}' "$container")"

  echo "$(ask --version), healthy on port $port"
  answer=$(ask RL.TAKE image-check 10 5 | paste -sd ' ')
  echo "RL.TAKE image-check 10 5  ->  $answer"
  [ "$answer" = "1 9 0 200 10" ] || fail "wrong answer"
  uid=$(docker exec "$container" sed -n 's/^Uid:\t\([0-9]*\).*/\1/p' /proc/1/status)
  [ "$uid" != 0 ] || fail "the server runs as root"
  echo "the server runs as user $uid"

  SECONDS=0 # bash counts them up
  docker stop -t 10 "$container" >/dev/null
  # a server killed at the end of the grace period would have ended with 137
  [ "$(docker inspect -f '{{.State.ExitCode}}' "$container")" = 0 ] || fail "it did not end well when stopped"
  echo "stopped in $SECONDS s"
  docker rm "$container" >/dev/null
  container=
}

check redis redis:8
check valkey valkey/valkey:9
