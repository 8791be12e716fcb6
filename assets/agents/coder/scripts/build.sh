#!/usr/bin/env bash
# build: builds the project, with BUILD_CMD if that is set, and goes back to implement while it fails.

. "$LLM_AGENT_DATA_DIR/scripts/common.sh"

enter_project
detect_project
verify build "${BUILD_CMD:-${project_build:-$project_check}}"
