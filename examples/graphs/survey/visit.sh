# Prints {"output": "NAME was visited"}, and fails for a city that is not there.
city=$(printf '%s' "$GRAPH_STATE" | sed 's/.*"city":{"key":"\([A-Za-z]*\)".*/\1/')
if [ "$city" = Atlantis ]; then
  echo "$city is not there" >&2
  exit 1
fi
printf '{"output": "%s was visited"}\n' "$city"
