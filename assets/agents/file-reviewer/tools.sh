#!/usr/bin/env bash
# A tool that shows the files of a project.
set -euo pipefail

# @meta read-only
# @sandbox read
# @env LLM_OUTPUT=/dev/stdout Where the result goes

shared=${LLM_AGENT_ROOT_DIR:-$(dirname "$0")}/../.shared/utils.sh
[ -f "$shared" ] || shared=${LLM_ROOT_DIR:-}/agents/.shared/utils.sh
[ -f "$shared" ] || { echo "$shared is missing. The user can restore it with: loki --install agents" >&2 && exit 1; }
# shellcheck source=../.shared/utils.sh
. "$shared"

# @cmd List the files and directories of the project to a depth of 3
get_structure() {
	enter_project
	project_tree >>"$LLM_OUTPUT"
}

eval "$(loki --argc-eval "$0" "$@")"
