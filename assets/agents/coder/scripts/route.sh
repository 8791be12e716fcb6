#!/usr/bin/env bash
# route: sends plans with a complexity of 7 and more to the user, unless CODER_AUTOAPPROVE=1.

. "$LLM_AGENT_DATA_DIR/scripts/common.sh"

if [ "$(state_number complexity_score)" -ge 7 ] && [ "${CODER_AUTOAPPROVE:-}" != 1 ]; then
	echo '{"_next": "approve"}'
else
	echo '{"_next": "implement"}'
fi
