#!/usr/bin/env bash
# test: tests the project, with TEST_CMD if that is set, and goes back to implement while it fails.

. "$LLM_AGENT_DATA_DIR/scripts/common.sh"

enter_project
detect_project
verify test "${TEST_CMD:-$project_test}"
