#!/usr/bin/env bash
# package.sh   Packs the built module with its licences and those of what is linked into it: target/package/librl-VERSION-linux-
# ARCHITECTURE.tar.gz, and its sha256 beside it.
set -euo pipefail
cd "$(dirname "$0")/.."

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
version=$(cargo metadata --locked --no-deps --format-version 1 | grep -oE '"name":"librl","version":"[^"]+"' | cut -d '"' -f 8)
case $(uname -m) in
  x86_64) architecture=amd64 ;;
  aarch64) architecture=arm64 ;;
  *) architecture=$(uname -m) ;;
esac
name=librl-$version-linux-$architecture
folder=$target/package/$name
rm -rf "$folder"
mkdir -p "$folder"

# With the x bit, or servers refuse to load it.
install -m 755 "$target/release/librl.so" "$folder/"
cp README.md CHANGELOG.md "$folder/"
scripts/third-party.sh "$folder"

# The same files make the same archive.
stamp=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
cd "$target/package"
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$stamp" -c "$name" | gzip -n >"$name.tar.gz"
rm -rf "$folder"
sha256sum "$name.tar.gz" >"$name.tar.gz.sha256"
echo "$target/package/$name.tar.gz"
