#!/usr/bin/env bash
# lint.sh   Checks the scripts and the Dockerfile with the linters that are installed, and says which are not.
set -euo pipefail
cd "$(dirname "$0")/.."

lint() { # LINTER FILE...
  if command -v "$1" >/dev/null; then
    echo "$*"
    "$@"
  else
    echo "skipped: $1 is not installed"
  fi
}
lint shellcheck scripts/*.sh scripts/image-check/*.sh .ci/run
lint hadolint Dockerfile scripts/image-check/Dockerfile
