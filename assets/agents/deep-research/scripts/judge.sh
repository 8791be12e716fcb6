#!/usr/bin/env bash
# judge: sends findings with the verdict REVISE back, as often as max_revisions allows.

. "$LLM_AGENT_DATA_DIR/scripts/common.sh"

revisions=$(state_number revisions)
if state | LC_ALL=C grep -q '[{,]"verdict":"REVISE"' && [ "$revisions" -lt "$(state_number max_revisions)" ]; then
	echo "{\"revisions\": $((revisions + 1)), \"_next\": \"again\"}"
else
	echo '{"_next": "write"}'
fi
