#!/usr/bin/env bash
set -eo pipefail

# @env LLM_OUTPUT=/dev/stdout The output path
# @env LLM_AGENT_VAR_DSN! The address of the database

# @cmd Executes a query that only reads.
# @option --query! The query
read_query() {
  echo "$argc_query" >> "$LLM_OUTPUT"
}

# @cmd Lists all tables.
list_tables() {
  echo tables >> "$LLM_OUTPUT"
}

_helper() { :; }

eval "$(argc --argc-eval "$0" "$@")"
