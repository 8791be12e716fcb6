#!/usr/bin/env bash
# Tools for one SQL database. Loki opens SQLite itself, and the program usql all others.
set -euo pipefail

# @sandbox full
# @env LLM_OUTPUT=/dev/stdout Where the result goes

shared=${LLM_AGENT_ROOT_DIR:-$(dirname "$0")}/../.shared/utils.sh
[ -f "$shared" ] || shared=${LLM_ROOT_DIR:-}/agents/.shared/utils.sh
[ -f "$shared" ] || { echo "$shared is missing. The user can restore it with: loki --install agents" >&2 && exit 1; }
# shellcheck source=../.shared/utils.sh
. "$shared"
export USQL_DSN=${LLM_AGENT_VAR_DSN:-}

# @cmd Run SQL that only reads, such as SELECT, and return the rows. Everything else is refused
# @meta read-only
# @option --query! One or more SQL statements
read_query() {
	call_tool execute_sql_code code "$argc_query" >>"$LLM_OUTPUT" ||
		fail "The SQL was not run: it is not known to be a statement that only reads. Use write_query for changes."
}

# @cmd Run SQL that changes data or structure. The user is asked before
# @meta destructive
# @option --query! One or more SQL statements
write_query() {
	call_tool execute_sql_code code "$argc_query" -y >>"$LLM_OUTPUT"
}

# @cmd List the tables and views of the database
# @meta read-only
list_tables() {
	if is_sqlite; then
		call_tool execute_sql_code code "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY name" >>"$LLM_OUTPUT"
	else
		call_tool execute_sql_code code '\dtv' -y >>"$LLM_OUTPUT"
	fi
}

# @cmd Show the columns of a table, and how its rows are identified and connected
# @meta read-only
# @option --table-name! Name of the table, with its schema where that is needed
describe_table() {
	case $argc_table_name in
	*[!A-Za-z0-9_.\ \$-]*) fail "$argc_table_name is not a name of a table that this tool takes: letters, digits, blanks and _ . \$ - only." ;;
	esac
	if is_sqlite; then
		call_tool execute_sql_code code "SELECT sql FROM sqlite_master WHERE tbl_name = '$argc_table_name' AND sql IS NOT NULL ORDER BY type DESC" >>"$LLM_OUTPUT"
	else
		call_tool execute_sql_code code "\\d $argc_table_name" -y >>"$LLM_OUTPUT"
	fi
}

is_sqlite() {
	case $(printf %s "$USQL_DSN" | tr '[:upper:]' '[:lower:]') in
	sqlite:* | sqlite3:* | moderncsqlite:* | sq:* | mq:* | file:*) ;;
	*) return 1 ;;
	esac
}

eval "$(loki --argc-eval "$0" "$@")"
