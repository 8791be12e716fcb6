#!/usr/bin/env bash
# Checks the reply, and leads back to write if it is to be mended.
set -euo pipefail
result=$(printf '%s' "${GRAPH_STATE-$(cat "$GRAPH_STATE_FILE")}" | "$LOKI_EXECUTABLE" --call-tool graph__check -)
case $result in
'{"go_on":true,'*) printf '{"_next":"write",%s\n' "${result#\{}" ;;
*) printf '%s\n' "$result" ;;
esac
