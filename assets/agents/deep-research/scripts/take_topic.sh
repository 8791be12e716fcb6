#!/usr/bin/env bash
# take_topic: goes to ask_topic if the prompt, which is the topic, is empty or blank.

. "$LLM_AGENT_DATA_DIR/scripts/common.sh"

if state | LC_ALL=C grep -Eq '[{,]"initial_prompt":"([[:space:]]|\\[nrt])*"'; then
	echo '{"_next": "ask_topic"}'
else
	echo '{}'
fi
