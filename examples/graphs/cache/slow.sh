#!/usr/bin/env bash
# Counts how often it is really run.
file="${TMPDIR:-/tmp}/loki-example-cache"
echo >>"$file"
echo "{\"number\": $(($(wc -l <"$file")))}"
