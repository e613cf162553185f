#!/usr/bin/env bash
# package.sh   Packs the built module and the built service, each with its licences and those of what is linked into it:
# target/package/NAME-VERSION-linux-ARCHITECTURE.tar.gz, and its sha256 beside it.
set -euo pipefail
cd "$(dirname "$0")/.."

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
version=$(cargo metadata --locked --no-deps --format-version 1 | grep -oE '"name":"librl","version":"[^"]+"' | cut -d '"' -f 8)
case $(uname -m) in
  x86_64) architecture=amd64 ;;
  aarch64) architecture=arm64 ;;
  *) architecture=$(uname -m) ;;
esac
# The same files make the same archive.
stamp=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}

pack() { # PACKAGE EXECUTABLE FILE...
  local name=$1-$version-linux-$architecture
  local folder=$target/package/$name
  rm -rf "$folder"
  mkdir -p "$folder"
  # With the x bit, or servers refuse to load the module.
  install -m 755 "$target/release/$2" "$folder/"
  cp "${@:3}" CHANGELOG.md "$folder/"
  scripts/third-party.sh "$folder" "$1"
  # What is published has them all.
  [ -e "$folder/THIRD-PARTY-standard-library.html" ]
  (
    cd "$target/package"
    tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$stamp" -c "$name" | gzip -n >"$name.tar.gz"
    rm -rf "$folder"
    sha256sum "$name.tar.gz" >"$name.tar.gz.sha256"
  )
  echo "$target/package/$name.tar.gz"
}

pack librl librl.so README.md
pack rl-service rl-service docs/HTTP.md service/openapi.json service/rules.toml
