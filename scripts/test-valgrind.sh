#!/usr/bin/env bash
# test-valgrind.sh [FILTER...]   Runs the server tests with the installed server under valgrind's memcheck: every server that a
# test starts is watched, and asked to end by itself so that what it leaks is found. Fails if a test does, if any error has this
# module in its stack, and if anything of the module's is lost for good. The server's own compression reads memory that it
# has not set (lzf_compress), which is known and left out.
set -euo pipefail
cd "$(dirname "$0")/.."

RL_MODULE=$(realpath "${CARGO_TARGET_DIR:-target}/release/librl.so")
real=$(realpath -s "$(command -v redis-server || command -v valkey-server)")
work=$(realpath -m "${CARGO_TARGET_DIR:-target}/valgrind")
rm -rf "$work"
mkdir -p "$work"

cat >"$work/known.supp" <<S
{
   compression reads its table before it is set
   Memcheck:Cond
   fun:lzf_compress
   ...
}
{
   the same, by value
   Memcheck:Value8
   fun:lzf_compress
   ...
}
S
# Under the server's own name: it looks at it to know what it is. The allocator is a library, whose name has to be told.
server=$work/$(basename "$real")
cat >"$server" <<W
#!/bin/sh
exec valgrind -q --soname-synonyms='somalloc=libjemalloc*' --leak-check=full --show-leak-kinds=definite --num-callers=40 \\
  --suppressions='$work/known.supp' --log-file='$work/server.%p' '$real' "\$@"
W
chmod +x "$server"

export RL_MODULE RL_SERVER=$server RL_END_GENTLY=yes
failed=0
cargo test --release --locked --test server -- --test-threads "$(nproc)" "$@" || failed=1

servers=$(find "$work" -name 'server.*' | wc -l)
# A report is a block of lines; those that name the module are ours to answer for.
reports=$(cat "$work"/server.* | sed -E 's/^==[0-9]+== ?//' | awk -v RS= -v ORS='\n\n' '/librl\.so/' || true)
if [ -n "$reports" ]; then
  echo "$reports"
  failed=1
fi
echo "$servers servers watched; reports that name the module: $(grep -c . <<<"$reports" | sed 's/^0$/none/') lines"
exit $failed
