#!/usr/bin/env bash
# setup.sh [bench | browser | servers]   Installs what is missing to build and run the module (with `bench`: to measure it or to
# watch its memory, with `browser`: to see the admin page in one, with `servers`: to fetch every server, too). Where nothing is missing it calls no package manager, so it needs neither root nor a network.
set -euo pipefail

packages=()
missing() { # WHAT PACKAGE...
  echo "setup: missing: $1"
  shift
  packages+=("$@")
}

there() { command -v "$1" >/dev/null; }

# bindgen loads libclang itself and needs the headers that come with it; both lie outside the usual search paths.
libclang() {
  [ -n "${LIBCLANG_PATH:-}" ] && return
  compgen -G '/usr/lib/llvm*/lib/libclang[.-]*so*' >/dev/null && compgen -G '/usr/lib/llvm*/lib/clang/*/include/stddef.h' >/dev/null && return
  # elsewhere than in Debian: any clang that can find its own headers
  there clang && echo '#include <stddef.h>' | clang -E - >/dev/null 2>&1
}

if ! there cargo; then
  echo "setup: missing: cargo. Install Rust with rustup, for this user, and open a new shell." >&2
  exit 1
fi
there redis-server || there valkey-server || missing "a Redis or Valkey server" redis-server
there redis-cli || there valkey-cli || missing "redis-cli" redis-tools
# a compiler alone is not enough: without the C library's headers nothing compiles
echo '#include <stdio.h>' | cc -E - >/dev/null 2>&1 || missing "a C compiler with the C library's headers" gcc libc6-dev
libclang || missing "libclang (the server's API is translated from C at build time)" libclang-dev
if [ "${1:-}" = bench ]; then
  there valgrind || missing "valgrind (instructions are counted with it)" valgrind
  there wrk || missing "wrk (the HTTP services are put under load with it)" wrk
fi
if [ "${1:-}" = browser ]; then
  there chromedriver || missing "Chromium and its driver (the admin page is tested in it)" chromium chromium-driver
fi
if [ "${1:-}" = servers ]; then
  there pip3 || there pip || missing "pip (some servers come in Python packages)" python3-pip
fi

[ ${#packages[@]} -gt 0 ] || exit 0

by_hand="apt-get install --no-install-recommends ${packages[*]}"
if ! there apt-get; then
  echo "setup: this script knows Debian and Ubuntu only. Install what is missing by hand; there it is: $by_hand" >&2
  exit 1
fi
as_root=()
if [ "$(id -u)" != 0 ]; then
  if there sudo && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
    as_root=(sudo)
  else
    echo "setup: installing needs root, and there is no sudo to ask. As root, run: $by_hand" >&2
    exit 1
  fi
fi

# Debian starts a server as soon as it is installed, and at every boot. Nobody asked for that service, and it would sit
# on port 6379: while installing, no service may start, and afterwards it is disabled.
policy=/usr/sbin/policy-rc.d
installs_server=
case " ${packages[*]} " in *" redis-server "*) installs_server=yes ;; esac
if [ -n "$installs_server" ] && [ ! -e "$policy" ]; then
  trap '"${as_root[@]}" rm -f "$policy"' EXIT
  trap 'exit 1' HUP INT TERM
  printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
  "${as_root[@]}" chmod 755 "$policy"
fi

echo "setup: installing: ${as_root[*]}${as_root:+ }$by_hand"
"${as_root[@]}" apt-get -qq update || echo "setup: the package lists could not be refreshed; trying with those that are there"
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "${packages[@]}" >/dev/null

if [ -n "$installs_server" ]; then
  "${as_root[@]}" update-rc.d redis-server disable >/dev/null
  echo "setup: the package's own service is neither running nor enabled (to have it: systemctl enable --now redis-server)"
fi
