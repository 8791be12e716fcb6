# shellcheck shell=bash
# What the scripts of the coder have in common: the library of bundled agents, and how a failure
# of a build or of tests leads back to the model.

shared=${LLM_AGENT_DATA_DIR:-.}/../.shared/utils.sh
[ -f "$shared" ] || shared=${LLM_ROOT_DIR:-}/agents/.shared/utils.sh
[ -f "$shared" ] || { echo "$shared is missing. The user can restore it with: loki --install agents" >&2 && exit 1; }
# shellcheck source=../../.shared/utils.sh
. "$shared"

# verify NAME COMMAND runs a build or test command and prints what becomes of the state: NAME_result
# after a success; after a failure the output in failure, and one more in fix_attempts.
verify() {
	local output status=0 attempts
	output=$(run_check "$1" 12000 "$2") || status=$?
	if [ $status -eq 0 ]; then
		printf '{"%s_result": %s, "failure": ""}\n' "$1" "$(printf '%s\n' "$output" | outcome | json_string)"
		return
	fi
	attempts=$(state_number fix_attempts)
	if [ "$attempts" -ge "$(state_number max_fix_attempts)" ]; then
		output="After $attempts repairs this still fails:
$output"
	fi
	printf '{"failure": %s, "fix_attempts": %d}\n' "$(printf '%s' "$output" | json_string)" $((attempts + 1))
}

# outcome keeps the command and the last line of what run_check prints.
outcome() {
	awk 'NR == 1 { first = $0 } NF { last = $0 } END { print (first == last ? first : first ": " last) }'
}
