# shellcheck shell=bash
# The library of bundled agents, for the scripts of this directory.

shared=${LLM_AGENT_DATA_DIR:-.}/../.shared/utils.sh
[ -f "$shared" ] || shared=${LLM_ROOT_DIR:-}/agents/.shared/utils.sh
[ -f "$shared" ] || { echo "$shared is missing. The user can restore it with: loki --install agents" >&2 && exit 1; }
# shellcheck source=../../.shared/utils.sh
. "$shared"
