#!/usr/bin/env bash
# resolve: finds the project and prints what the other nodes need to know about it:
#
#   project_path   its directory, as seen from the working directory, absolute if it is not below
#   project_type   its kind
#   project_files  its files and directories to a depth of 3
#   auto_approve   whether a complex plan needs no approval: CODER_AUTOAPPROVE=1
#   build_cmd, test_cmd  how it is built and tested, empty if that is not known

. "$LLM_AGENT_DATA_DIR/scripts/common.sh"

here=$(pwd -P)
enter_project
case $project in
"$here") place=. ;;
"$here"/*) place=${project#"$here"/} ;;
*) place=$project ;;
esac
keep_project=yes detect_project
build=${BUILD_CMD:-${project_build:-$project_check}}
test=${TEST_CMD:-$project_test}
approve=false
[ "${CODER_AUTOAPPROVE:-}" != 1 ] || approve=true
printf '{"project_path": %s, "project_type": %s, "project_files": %s, "auto_approve": %s, "build_cmd": %s, "test_cmd": %s}\n' \
	"$(printf %s "$place" | json_string)" "$(printf %s "$project_type" | json_string)" "$(project_tree | json_string)" "$approve" \
	"$(printf %s "$build" | json_string)" "$(printf %s "$test" | json_string)"
