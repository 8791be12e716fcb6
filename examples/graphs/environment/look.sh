#!/usr/bin/env bash
# A state of more than 32 KiB is in a file.
state=${GRAPH_STATE-$(cat "$GRAPH_STATE_FILE")}
echo "{\"url\": \"$LLM_AGENT_VAR_API_URL\", \"size\": ${#state}}"
