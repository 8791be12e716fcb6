#!/usr/bin/env bash
# Tools that know how a project is built and tested.
set -euo pipefail

# @env LLM_OUTPUT=/dev/stdout Where the result goes

shared=${LLM_AGENT_ROOT_DIR:-$(dirname "$0")}/../.shared/utils.sh
[ -f "$shared" ] || shared=${LLM_ROOT_DIR:-}/agents/.shared/utils.sh
[ -f "$shared" ] || { echo "$shared is missing. The user can restore it with: loki --install agents" >&2 && exit 1; }
# shellcheck source=../.shared/utils.sh
. "$shared"
ask_model=yes keep_project=yes

# @cmd Show the kind of the project, its commands for building, testing and checking, and its files
# @sandbox full
get_project_info() {
	enter_project
	show_project >>"$LLM_OUTPUT"
}

# @cmd Run the build command of the project, or its check command if there is no build
# @meta destructive
# @meta timeout 300s
run_build() {
	enter_project
	detect_project
	run_check build 16000 "${project_build:-$project_check}" >>"$LLM_OUTPUT"
}

# @cmd Run the tests of the project
# @meta destructive
# @meta timeout 600s
run_tests() {
	enter_project
	detect_project
	run_check test 16000 "$project_test" >>"$LLM_OUTPUT"
}

eval "$(loki --argc-eval "$0" "$@")"
