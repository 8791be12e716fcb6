#!/usr/bin/env bash
# Tools of this agent: a function with @cmd is a tool, its options are what a model gives.

# @meta read-only
# @sandbox read

# @cmd Count the words of a text
# @option --text! The text
count_words() {
	set -f
	# shellcheck disable=SC2086 # the words are what counts
	set -- $argc_text
	printf '%s' "$#" >>"$LLM_OUTPUT"
}

eval "$(loki --argc-eval "$0" "$@")"
