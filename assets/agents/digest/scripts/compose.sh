#!/usr/bin/env bash
# compose: reads the state from GRAPH_STATE or GRAPH_STATE_FILE and prints the parts
# of the digest in Markdown, as one JSON object:
#
#   title             of the digest
#   sections          one for each file with its summary, and the list of sources
#   overview_request  the instruction for the overview
#   overview_text     the text it is to be made of
#
# It fails if not a single file could be summarized.

LC_ALL=C # bytes are bytes
export LC_ALL

case $0 in
*/*) here=${0%/*} ;;
*) here=. ;;
esac

if [ -n "${GRAPH_STATE_FILE:-}" ]; then
	exec awk -f "$here/json.awk" -f "$here/compose.awk" <"$GRAPH_STATE_FILE"
fi
printf '%s' "${GRAPH_STATE:-}" | awk -f "$here/json.awk" -f "$here/compose.awk"
