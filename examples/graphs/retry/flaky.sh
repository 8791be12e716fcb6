#!/usr/bin/env bash
# Counts its tries in a file of the working directory, as $TMPDIR is another one at each try;
# a service that comes and goes would do without.
file="loki-example-retry-$LOKI_RUN_ID"
echo >>"$file"
try=$(($(wc -l <"$file")))
if [ "$try" -lt 3 ]; then
  echo "not yet" >&2
  exit 1
fi
rm "$file"
echo "{\"try\": $try}"
