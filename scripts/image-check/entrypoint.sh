#!/bin/sh
# What the official images' entrypoints do, as far as ours relies on it: flags alone are flags of the server, root gives
# way to the server's user, and modules are added behind the user's flags.
set -eu
case ${1:-server} in
  -*) ;;
  server) set -- ;;
  *) exec "$@" ;;
esac
if [ "$(id -u)" = 0 ]; then
  exec setpriv --reuid="$FLAVOUR" --regid="$FLAVOUR" --clear-groups "$0" "$@"
fi
if [ "$FLAVOUR" = redis ]; then
  for module in /usr/local/lib/redis/modules/*.so; do
    [ ! -x "$module" ] || set -- "$@" --loadmodule "$module"
  done
  exec redis-server "$@"
fi
# shellcheck disable=SC2086  # several flags in one variable
exec valkey-server "$@" ${VALKEY_EXTRA_FLAGS:-}
