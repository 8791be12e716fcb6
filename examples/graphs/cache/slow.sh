#!/usr/bin/env bash
# Counts how often it is really run, in a file of the working directory.
file=loki-example-cache
echo >>"$file"
echo "{\"number\": $(($(wc -l <"$file")))}"
