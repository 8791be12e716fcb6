#!/usr/bin/env bash
# Counts its tries in a file, which is kept for the next one: $TMPDIR may be another each time.
# A service that comes and goes would do without.
dir=${XDG_CACHE_HOME:-$HOME/.cache}/loki-examples
mkdir -p "$dir"
file=$dir/retry-$LOKI_RUN_ID
echo >>"$file"
try=$(($(wc -l <"$file")))
if [ "$try" -lt 3 ]; then
  echo "not yet" >&2
  exit 1
fi
rm "$file"
echo "{\"try\": $try}"
