#!/usr/bin/env bash
# third-party.sh FOLDER [PACKAGE]   Puts into FOLDER what has to go with what was built of PACKAGE (librl, the module): our licences;
# of each package that is linked into it, as cargo knows them, the text of the licence that we use it under (THIRD-PARTY.txt);
# and the notices of the standard library, which the compiler brings, unless it was installed without its documents. Fails for a
# package that brings no text.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$1 built=${2:-librl}
mkdir -p "$folder"
cp LICENSE-MIT LICENSE-APACHE "$folder/"
notices=$(rustc --print sysroot)/share/doc/rust/COPYRIGHT-library.html
if [ -e "$notices" ]; then
  cp "$notices" "$folder/THIRD-PARTY-standard-library.html"
else
  echo "the notices of the standard library are not here: $notices" >&2
fi

sources=${CARGO_HOME:-$HOME/.cargo}/registry/src
cargo fetch -q --locked

# What runs in the compiler only, macros and build scripts, is not linked. Ours are those with a path behind the version.
linked=$(cargo tree --locked -p "$built" -e normal,no-proc-macro --prefix none -f '{p}|{l}' | sed -E 's/ \(\*\)$//' | sort -u | grep -v ' (')

# Of several licences to choose from, MIT; else the one there is, such as BSD-3-Clause of the bindings. All where all apply.
licence_files() { # NAME VERSION LICENCE
  local file
  for file in "$sources"/*/"$1-$2"/{LICENSE-MIT*,LICENSE,LICENSE.*,LICENSE-*}; do
    [ ! -f "$file" ] || { echo "$file"; [[ $3 = *' AND '* ]] || break; }
  done | awk '!seen[$0]++'
  # what Apache-2.0 wants passed on, should it be there
  for file in "$sources"/*/"$1-$2"/NOTICE*; do [ ! -f "$file" ] || echo "$file"; done
}

{
  echo "$built is linked from the packages below. Its own licences are in LICENSE-MIT and LICENSE-APACHE."
  while IFS='|' read -r package licence; do
    read -r name version <<<"$package"
    from=$name
    # in one repository with redis-module, whose authors and licence it has, and of whose text it brings no copy
    [ "$name" != redis-module-common ] || from=redis-module
    of=$(sed -nE "s/^$from v([^|]+)\|.*/\1/p" <<<"$linked" | head -n 1)
    [ "$from" != "$name" ] || of=${version#v}
    files=$(licence_files "$from" "$of" "$licence")
    if [ -z "$files" ]; then
      echo "$name $version: no licence text was found" >&2
      exit 1
    fi
    printf '\n%s\n%s %s (%s)\n\n' "$(printf '=%.0s' {1..100})" "$name" "${version#v}" "$licence"
    while read -r file; do cat "$file"; done <<<"$files"
  done <<<"$linked"
} >"$folder/THIRD-PARTY.txt"
