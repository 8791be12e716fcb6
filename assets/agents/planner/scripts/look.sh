#!/usr/bin/env bash
# Describes what a graph can use: guide, offer and, if an agent is to be changed, current.
set -euo pipefail
printf '%s' "${GRAPH_STATE-$(cat "$GRAPH_STATE_FILE")}" | "$LOKI_EXECUTABLE" --call-tool graph__offer -
