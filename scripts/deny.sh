#!/usr/bin/env bash
# deny.sh   Holds the dependencies against deny.toml: licences, sources, duplicates, and the advisories about them. Where the
# advisories cannot be fetched it says so, and fails where CI=true. Installs cargo-deny if it is not there.
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.20.2
command -v cargo-deny >/dev/null || cargo install --locked cargo-deny@$version
cargo deny check licenses bans sources
if ! cargo deny check advisories; then
  echo "the advisories could not be checked, or there are some: see above" >&2
  [ "${CI:-}" != true ] || exit 1
fi
