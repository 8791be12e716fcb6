# Cancels what a node booked: the state says under _compensates what that node wrote.
id=$(printf '%s' "$GRAPH_STATE" | sed 's/.*"_compensates":{[^}]*"booking":"\([^"]*\)".*/\1/')
printf '{"canceled": "%s"}\n' "$id"
