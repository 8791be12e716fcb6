#!/usr/bin/env bash
# Compares Loki's graph engine with LangGraph.js and eino: builds all sides in a
# directory of their own, runs every case, prints the table and writes it to results.md
# and to docs/benchmarks.md.
#
#   bench/peers/run.sh [CASES]     CASES is a shell pattern, such as 'chain_*'; with one,
#                                  the table is printed only
#
# It needs go, node 20 or newer, npm, and the first time the network. PEERS_DIR is where
# everything is built, ~/.cache/loki-bench-peers by default.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
work=${PEERS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/loki-bench-peers}
limit=${PEERS_TIMEOUT:-900} # seconds, for each of building, installing and running
cases=${1:-*}

say() { printf '%s\n' "$*" >&2; }

mkdir -p "$work/langgraph"

say "building Loki's and eino's sides"
(cd "$here" && timeout "$limit" go build -buildvcs=auto -o "$work/loki" ./loki && timeout "$limit" go build -o "$work/compare" ./compare)
(cd "$here/eino" && timeout "$limit" go build -o "$work/eino" .)

cp "$here"/langgraph/*.mjs "$here/langgraph/package.json" "$work/langgraph/"
if ! cmp -s "$here/langgraph/package-lock.json" "$work/langgraph/installed.json"; then
  say "installing LangGraph.js; its SQLite checkpointer may be compiled, which takes a minute"
  cp "$here/langgraph/package-lock.json" "$work/langgraph/"
  (cd "$work/langgraph" && timeout "$limit" npm ci --no-audit --no-fund --loglevel=error >&2)
  cp "$here/langgraph/package-lock.json" "$work/langgraph/installed.json"
fi

out=()
[ "$cases" = '*' ] && out=(-o "$here/results.md" -doc "$here/../../docs/benchmarks.md")
# Node warns about LangGraph's many listeners in the burst. Nothing may be traced.
export NODE_NO_WARNINGS=1 LANGSMITH_TRACING=false LANGCHAIN_TRACING_V2=false
timeout "$limit" "$work/compare" -dir "$work" -cases "$cases" "${out[@]}"
