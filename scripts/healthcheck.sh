#!/bin/sh
# healthcheck.sh   The image's HEALTHCHECK: healthy if the module answers. Where the server wants a password, set
# REDISCLI_AUTH for the container; a server that speaks TLS or a unix socket only needs a HEALTHCHECK of its own.
set -eu

# The server states where it listens in its process title: "redis-server 127.0.0.1:7896". Without a title
# (set-proc-title no), a --port among its arguments counts.
address=127.0.0.1:6379
title=$(cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' '\n' |
  sed -nE 's/^[^ ]*(redis|valkey)-server ([^ ]*:[0-9]+)( .*)?$/\2/p' | head -n 1)
argument=$(tr '\0' '\n' </proc/1/cmdline | sed -n '/^--port$/{n;p;}' | tail -n 1)
if [ -n "$title" ]; then
  address=$title
elif [ -n "$argument" ]; then
  address=127.0.0.1:$argument
fi
host=${address%:*}
case $host in
  '*') host=127.0.0.1 ;;
  '[::*]') host=::1 ;;
  *) host=$(printf %s "$host" | tr -d '[]') ;;
esac

cli=$(command -v redis-cli || command -v valkey-cli)
# A full bucket of one token: the answer starts with 1, for "allowed". A cluster's node that is not in charge of the key
# answers MOVED or CLUSTERDOWN, but only because it knows the command.
answer=$("$cli" -h "$host" -p "${address##*:}" RL.PEEK rl:healthcheck 1 1 | head -n 1)
case $answer in
  1 | MOVED\ * | CLUSTERDOWN\ *) exit 0 ;;
esac
echo "$host port ${address##*:} answers: $answer"
exit 1
