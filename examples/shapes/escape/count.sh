state=${GRAPH_STATE-$(cat "$GRAPH_STATE_FILE")}
[[ $state =~ \"count\":([0-9]+) ]]
count=$((BASH_REMATCH[1] + 1))
if ((count < 3)); then next=', "_next": "count"'; fi
echo "{\"count\": $count$next}"
