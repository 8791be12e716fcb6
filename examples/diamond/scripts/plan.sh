#!/usr/bin/env bash
# Puts the instruction for the node `points` into the state. Variables of the agent
# reach scripts in the environment, as LLM_AGENT_VAR_ and their name in capitals.

bullets=${LLM_AGENT_VAR_BULLETS:-3}
case $bullets in
'' | 0* | *[!0-9]*)
	# A script that fails prints why on stderr and exits with another status than 0.
	echo "the variable bullets must be a whole number, not \"$bullets\"" >&2
	exit 1
	;;
esac

# Exactly one JSON object on stdout.
printf '{"points_request": "Summarise the text in %s bullets."}\n' "$bullets"
