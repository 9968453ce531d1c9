#!/bin/sh
# The generated pages of doc/reference/ are what the programs say of themselves: tools/docs writes them
# from help, /openapi.json and /metrics. When this fails, run: make docs. $1 is stint.
set -eu
[ -n "${STINTD:-}" ] || { echo "stintd is not built here"; exit 77; }
exec "${STINT_SOURCE:-$(dirname "$0")/..}/tools/docs" --check "$(dirname "$1")"
