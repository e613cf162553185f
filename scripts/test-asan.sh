#!/usr/bin/env bash
# test-asan.sh SERVER [FILTER...]   Runs the server tests with a module that AddressSanitizer watches, in SERVER, which has to be
# built with it (in the source of a Redis or Valkey: make SANITIZER=address MALLOC=libc). The module's memory is the server's, so
# both have to be. Every server is asked to end by itself, so that what it leaks is found. Fails if a test does, or if any
# report has this module in its stack.
set -euo pipefail
cd "$(dirname "$0")/.."

real=$(realpath "$1")
shift
grep -q __asan_init "$real" || { echo "$real is not built with AddressSanitizer" >&2; exit 1; }
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
host=$(rustc -vV | sed -n 's/^host: //p')
# The sanitizer is an unstable option that the stable compiler knows and is asked for so. Names are kept for the reports.
RUSTC_BOOTSTRAP=1 RUSTFLAGS='-Zsanitizer=address -Cforce-frame-pointers=yes -Cstrip=none -g' CARGO_PROFILE_RELEASE_LTO=off \
  cargo build --release --locked --target "$host" --target-dir "$target/asan"

work=$target/asan/reports
rm -rf "$work"
mkdir -p "$work"
# Under the server's own name: it looks at it to know what it is.
server=$work/$(basename "$real")
cat >"$server" <<W
#!/bin/sh
touch '$work'/started.\$\$
ASAN_OPTIONS=detect_leaks=1:fast_unwind_on_malloc=0:log_path='$work/report' exec '$real' "\$@"
W
chmod +x "$server"

export RL_MODULE=$target/asan/$host/release/librl.so RL_SERVER=$server RL_END_GENTLY=yes
# Redis 8.6 asks for the size of the middle of its own allocation where MEMORY USAGE looks at a module's key that expires
# (kvobjComputeSize, zmalloc_size(o)). Where that is so, the tests that ask for the memory of such a key are left out.
skipped=()
ask() { "$(dirname "$real")/redis-cli" -s "$work/socket" "$@"; }
"$server" --port 0 --unixsocket "$work/socket" --dir "$work" --save '' --loadmodule "$RL_MODULE" >/dev/null 2>&1 &
for _ in {1..100}; do
  ask PING >/dev/null 2>&1 && break
  sleep 0.1
done
ask RL.TAKE key 10 1/h >/dev/null
ask MEMORY USAGE key >/dev/null 2>&1 || true
ask SHUTDOWN NOSAVE >/dev/null 2>&1 || true
wait
if grep -qs 'call malloc_usable_size() for pointer which is not owned' "$work"/report.* && grep -q '#3 .* in kvobjComputeSize' "$work"/report.*; then
  echo "left out: this server does not survive MEMORY USAGE of a module's key that expires"
  skipped+=(--skip takes_to_the_last_token_denies_and_says_what_it_is --skip a_bucket_costs_as_much_as_a_short_string_or_so
    --skip a_window_takes_8_bytes_a_call_whatever_it_costs)
  rm -f "$work"/report.*
fi
rm -f "$work"/started.*

failed=0
cargo test --release --locked --test server -- --test-threads "$(nproc)" "${skipped[@]}" "$@" || failed=1

# A report is one stack or several, which end with an empty line.
reports=$(cat "$work"/report.* 2>/dev/null | awk -v RS= -v ORS='\n\n' '/librl\.so/' || true)
if [ -n "$reports" ]; then
  echo "$reports"
  failed=1
fi
count() { find "$work" -name "$1.*" | wc -l; }
echo "$(count started) servers watched, $(count report) of them reported something, the module's: $([ -n "$reports" ] && echo yes || echo nothing)"
exit $failed
