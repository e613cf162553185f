#!/usr/bin/env bash
# fuzz.sh [SECONDS [TARGET...]]   Runs the fuzz targets (fuzz/fuzz_targets), each for SECONDS (900), one after the other on one
# core. `record` and `dump` go through a real server (the installed one, or RL_SERVER). Stops at the first finding, whose input
# then lies in fuzz/artifacts. What is found on the way is kept in fuzz/grown, and begun with the next time.
#
# libFuzzer, by the crate libfuzzer-sys: it needs no nightly compiler, only the coverage that the stable one can put in.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-900}
shift || true
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(rate arguments codec decisions record dump)

target_dir=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export RL_MODULE=${RL_MODULE:-$target_dir/release/librl.so}
RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
  -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
  -Cllvm-args=-sanitizer-coverage-trace-compares" \
  cargo build --release --locked --manifest-path fuzz/Cargo.toml --target-dir "$target_dir/fuzz" \
  --target "$(rustc -vV | sed -n 's/^host: //p')"
binaries=$target_dir/fuzz/$(rustc -vV | sed -n 's/^host: //p')/release

for target in "${targets[@]}"; do
  echo
  echo "=== $target, $seconds s"
  mkdir -p "fuzz/grown/$target" fuzz/artifacts
  corpus=()
  [ ! -d "fuzz/corpus/$target" ] || corpus=("fuzz/corpus/$target")
  # No alarm for slow inputs: it would interrupt the targets that wait for a server.
  "$binaries/$target" -max_total_time="$seconds" -max_len=1024 -timeout=0 -print_final_stats=1 -verbosity=0 \
    -artifact_prefix=fuzz/artifacts/ "fuzz/grown/$target" "${corpus[@]}"
done
