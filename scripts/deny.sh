#!/usr/bin/env bash
# deny.sh   Holds the dependencies against deny.toml: licences, sources, duplicates, and the advisories about them. Where the
# advisories cannot be fetched it says so, and fails where CI=true. Installs cargo-deny if it is not there.
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.20.2
command -v cargo-deny >/dev/null || cargo install --locked cargo-deny@$version
# Duplicates are told and allowed: the bindings' macros and build scripts bring several versions of a package.
cargo deny check licenses bans sources
# An advisory fails always; a database that cannot be fetched only where CI=true.
if said=$(cargo deny check advisories 2>&1); then
  echo "$said"
else
  echo "$said"
  ! grep -q 'advisories FAILED' <<<"$said" || exit 1
  echo "the advisories could not be checked: see above" >&2
  [ "${CI:-}" != true ] || exit 1
fi
