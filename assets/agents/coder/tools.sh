#!/usr/bin/env bash
# Tools that know how a project is built and tested, for nodes that are added to the graph.
set -euo pipefail

# @env LLM_OUTPUT=/dev/stdout Where the result goes

shared=${LLM_AGENT_ROOT_DIR:-$(dirname "$0")}/../.shared/utils.sh
[ -f "$shared" ] || shared=${LLM_ROOT_DIR:-}/agents/.shared/utils.sh
[ -f "$shared" ] || { echo "$shared is missing. The user can restore it with: loki --install agents" >&2 && exit 1; }
# shellcheck source=../.shared/utils.sh
. "$shared"

# @cmd Run the build command of the project, or its check command if there is no build
# @meta destructive
# @meta timeout 300s
verify_build() {
	enter_project
	detect_project
	run_check build 16000 "${BUILD_CMD:-${project_build:-$project_check}}" >>"$LLM_OUTPUT"
}

# @cmd Run the tests of the project
# @meta destructive
# @meta timeout 600s
run_tests() {
	enter_project
	detect_project
	run_check test 16000 "${TEST_CMD:-$project_test}" >>"$LLM_OUTPUT"
}

# @cmd List the files and directories of the project to a depth of 3
# @meta read-only
# @sandbox read
get_project_structure() {
	enter_project
	project_tree >>"$LLM_OUTPUT"
}

eval "$(loki --argc-eval "$0" "$@")"
