
# Makes the call that the command line asks for.
set -u

fail() {
    printf '%s\n' "$1" >&2
    exit 1
}

command -v jq >/dev/null || fail "this program needs jq"
if [[ -z "$tool" ]]; then
    [[ $# -gt 0 ]] || fail "usage: ${0##*/} FUNCTION JSON"
    tool=$1
    shift
fi
if [[ -n "${LLM_TOOL_DATA_FILE:-}" && -f "$LLM_TOOL_DATA_FILE" ]]; then
    data=$(<"$LLM_TOOL_DATA_FILE")
else
    [[ $# -gt 0 ]] || fail "usage: ${0##*/} ${agent:+FUNCTION }JSON"
    data=$1
fi
unset LLM_TOOL_DATA_FILE
words=$(jq -rn --arg tool "$tool" --argjson subcommands "$subcommands" --argjson switches "$switches" --argjson data "$data" '
    def text: if type == "string" then . else tojson end;
    if $subcommands[$tool] == null then "unknown" | halt_error else . end
    | [ if $subcommands[$tool] == "" then empty else $subcommands[$tool] end,
        ( $data | to_entries[] | .key as $key | .value as $value
          | ($switches[$tool][$key] // ("--" + ($key | gsub("_"; "-")) | {flag: ., value: (. + "=")})) as $switch
          | if ($value | type) == "boolean" and $switch.flag != "" then (if $value then $switch.flag else empty end)
            elif ($value | type) == "array" then $value[] | $switch.value + text
            else $switch.value + ($value | text)
            end )
      ] | @sh') || fail "${0##*/}: the arguments are not a JSON object, or there is no function $tool"
eval "set -- $words"
for env_file in "${env_files[@]}"; do
    [[ -f "$env_file" ]] || continue
    while IFS= read -r line || [[ -n "$line" ]]; do
        if [[ "$line" =~ ^[[:space:]]*(export[[:space:]]+)?([A-Za-z_][A-Za-z0-9_]*)[[:space:]]*=[[:space:]]*(.*)$ ]]; then
            name=${BASH_REMATCH[2]} value=${BASH_REMATCH[3]%$'\r'}
            [[ -n "${!name+x}" ]] || eval "export $name=$value"
        fi
    done <"$env_file"
done
for variable in "${environment[@]}"; do
    export "${variable?}"
done
if [[ -n "$agent" ]]; then
    LLM_AGENT_FUNC=$(jq -rn --arg tool "$tool" --argjson subcommands "$subcommands" '$subcommands[$tool]')
    export LLM_AGENT_FUNC
fi
if [[ -n "${LLM_OUTPUT:-}" ]]; then
    exec bash "$file" "$@"
fi
LLM_OUTPUT=$(mktemp)
export LLM_OUTPUT
trap 'rm -f "$LLM_OUTPUT"' EXIT
bash "$file" "$@"
status=$?
cat "$LLM_OUTPUT"
exit "$status"
