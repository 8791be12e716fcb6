#!/usr/bin/env bash
# Tools for one SQL database. Loki opens SQLite itself, and the program usql all others.
set -euo pipefail

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

# ARGC-BUILD {
# Generated from the comment tags; changes are lost.

_argc_die() {
    builtin printf '%s\n' "$@" >&2
    builtin exit 1
}

_argc_is_option() {
    builtin local _argc_head="${1%%=*}"
    case "$_argc_head" in
    *[[:space:]]*) builtin return 1 ;;
    esac
    case "$1" in
    ---*) builtin return 1 ;;
    -*) builtin return 0 ;;
    ++*) builtin return 1 ;;
    +*) if [[ -n "$_argc_plus" ]]; then builtin return 0; fi ;;
    esac
    builtin return 1
}

# MIN MAX MODE LABEL WORD...: the values of the option that is the first WORD. MAX may be
# empty for no limit. MODE is rest, assigned or empty.
_argc_take() {
    builtin local _argc_min="$1" _argc_max="$2" _argc_mode="$3" _argc_what="$4" _argc_more=1
    builtin shift 4
    _argc_values=()
    _argc_used=1
    if [[ "$1" == *=* ]]; then
        _argc_values=("${1#*=}")
    elif [[ "$_argc_mode" != assigned ]]; then
        builtin shift
        while [[ $# -gt 0 && -n "$_argc_more" ]]; do
            if [[ -n "$_argc_max" && ${#_argc_values[@]} -ge "${_argc_max:-0}" ]]; then
                _argc_more=
            elif [[ "$_argc_mode" != rest && ${#1} -gt 1 ]] && _argc_is_option "$1"; then
                _argc_more=
            else
                _argc_values+=("$1")
                _argc_used=$((_argc_used + 1))
                builtin shift
            fi
        done
    fi
    if [[ ${#_argc_values[@]} -lt "$_argc_min" ]]; then
        _argc_die "error: incorrect number of values for \`$_argc_what\`"
    fi
}

_argc_help_0() {
    builtin printf '%s\n' 'USAGE:  <COMMAND>

COMMANDS:
  read_query      Run SQL that only reads, such as SELECT, and return the rows. Everything else is refused [aliases: read-query]
  write_query     Run SQL that changes data or structure. The user is asked before [aliases: write-query]
  list_tables     List the tables and views of the database [aliases: list-tables]
  describe_table  Show the columns of a table, and how its rows are identified and connected [aliases: describe-table]

ENVIRONMENTS:
  LLM_OUTPUT  Where the result goes [default: /dev/stdout]'
}

_argc_parse_0() {
    builtin local _argc_key _argc_next= _argc_plus=
    while [[ $# -gt 0 && -z "$_argc_next" ]]; do
        _argc_key="${1%%=*}"
        case "$_argc_key" in
            '--help' | '-help' | '-h')
                _argc_help_0
                builtin exit 0
                ;;
            '--version' | '-version' | '-V')
                builtin printf '%s\n' '0.0.0'
                builtin exit 0
                ;;
            '--')
                builtin shift
                _argc_dash=${#argc__positionals[@]}
                argc__positionals+=("$@")
                builtin set --
                ;;
            *)
                case "$1" in
                    'read_query' | 'read-query')
                        builtin shift
                        _argc_next=_argc_parse_1
                        ;;
                    'write_query' | 'write-query')
                        builtin shift
                        _argc_next=_argc_parse_2
                        ;;
                    'list_tables' | 'list-tables')
                        builtin shift
                        _argc_next=_argc_parse_3
                        ;;
                    'describe_table' | 'describe-table')
                        builtin shift
                        _argc_next=_argc_parse_4
                        ;;
                    'help')
                        case "${2-}" in
                            'read_query' | 'read-query')
                                _argc_help_1
                                ;;
                            'write_query' | 'write-query')
                                _argc_help_2
                                ;;
                            'list_tables' | 'list-tables')
                                _argc_help_3
                                ;;
                            'describe_table' | 'describe-table')
                                _argc_help_4
                                ;;
                            '')
                                _argc_help_0
                                ;;
                            *)
                                _argc_die "error: unknown subcommand \`$2\`"
                                ;;
                        esac
                        builtin exit 0
                        ;;
                    *)
                        _argc_die 'error: `` requires a subcommand but one was not provided' '  [subcommands: read_query, write_query, list_tables, describe_table]'
                        ;;
                esac
                ;;
        esac
    done
    if [[ -n "$_argc_next" ]]; then
        "$_argc_next" "$@"
        builtin return 0
    fi
    if [[ ${#argc__positionals[@]} -eq 0 ]]; then
        _argc_help_0
        builtin exit 0
    fi
    if [[ ${#argc__positionals[@]} -eq 1 && "${argc__positionals[0]}" == help && "$_argc_dash" -lt 0 ]]; then
        _argc_help_0
        builtin exit 0
    fi
    if [[ -z "${LLM_OUTPUT-}" ]]; then
        LLM_OUTPUT='/dev/stdout'
        builtin export LLM_OUTPUT
    fi
    builtin return 0
}

_argc_help_1() {
    builtin printf '%s\n' 'Run SQL that only reads, such as SELECT, and return the rows. Everything else is refused

USAGE:  read_query --query <QUERY>

OPTIONS:
      --query <QUERY>  One or more SQL statements
  -h, --help           Print help

ENVIRONMENTS:
  LLM_OUTPUT  Where the result goes [default: /dev/stdout]'
}

# read_query
_argc_parse_1() {
    builtin local _argc_key _argc_next= _argc_plus=
    while [[ $# -gt 0 && -z "$_argc_next" ]]; do
        _argc_key="${1%%=*}"
        case "$_argc_key" in
            '--help' | '-help' | '-h')
                _argc_help_1
                builtin exit 0
                ;;
            '--')
                builtin shift
                _argc_dash=${#argc__positionals[@]}
                argc__positionals+=("$@")
                builtin set --
                ;;
            '--query')
                _argc_take 1 1 '' '--query <QUERY>' "$@"
                builtin shift "$_argc_used"
                if [[ -n "${argc_query-}" ]]; then
                    _argc_die 'error: the argument `--query` cannot be used multiple times'
                fi
                argc_query="${_argc_values[0]-}"
                ;;
            *)
                if _argc_is_option "$1"; then
                    _argc_die "error: unexpected argument \`$_argc_key\` found"
                fi
                argc__positionals+=("$1")
                builtin shift
                ;;
        esac
    done
    if [[ -z "${argc_query-}" ]]; then
        _argc_missing+=('  --query <QUERY>')
    fi
    if [[ ${#argc__positionals[@]} -eq 1 && "${argc__positionals[0]}" == help && "$_argc_dash" -lt 0 ]]; then
        _argc_help_1
        builtin exit 0
    fi
    if [[ -z "${LLM_OUTPUT-}" ]]; then
        LLM_OUTPUT='/dev/stdout'
        builtin export LLM_OUTPUT
    fi
    argc__fn='read_query'
    builtin return 0
}

_argc_help_2() {
    builtin printf '%s\n' 'Run SQL that changes data or structure. The user is asked before

USAGE:  write_query --query <QUERY>

OPTIONS:
      --query <QUERY>  One or more SQL statements
  -h, --help           Print help

ENVIRONMENTS:
  LLM_OUTPUT  Where the result goes [default: /dev/stdout]'
}

# write_query
_argc_parse_2() {
    builtin local _argc_key _argc_next= _argc_plus=
    while [[ $# -gt 0 && -z "$_argc_next" ]]; do
        _argc_key="${1%%=*}"
        case "$_argc_key" in
            '--help' | '-help' | '-h')
                _argc_help_2
                builtin exit 0
                ;;
            '--')
                builtin shift
                _argc_dash=${#argc__positionals[@]}
                argc__positionals+=("$@")
                builtin set --
                ;;
            '--query')
                _argc_take 1 1 '' '--query <QUERY>' "$@"
                builtin shift "$_argc_used"
                if [[ -n "${argc_query-}" ]]; then
                    _argc_die 'error: the argument `--query` cannot be used multiple times'
                fi
                argc_query="${_argc_values[0]-}"
                ;;
            *)
                if _argc_is_option "$1"; then
                    _argc_die "error: unexpected argument \`$_argc_key\` found"
                fi
                argc__positionals+=("$1")
                builtin shift
                ;;
        esac
    done
    if [[ -z "${argc_query-}" ]]; then
        _argc_missing+=('  --query <QUERY>')
    fi
    if [[ ${#argc__positionals[@]} -eq 1 && "${argc__positionals[0]}" == help && "$_argc_dash" -lt 0 ]]; then
        _argc_help_2
        builtin exit 0
    fi
    if [[ -z "${LLM_OUTPUT-}" ]]; then
        LLM_OUTPUT='/dev/stdout'
        builtin export LLM_OUTPUT
    fi
    argc__fn='write_query'
    builtin return 0
}

_argc_help_3() {
    builtin printf '%s\n' 'List the tables and views of the database

USAGE:  list_tables

ENVIRONMENTS:
  LLM_OUTPUT  Where the result goes [default: /dev/stdout]'
}

# list_tables
_argc_parse_3() {
    builtin local _argc_key _argc_next= _argc_plus=
    while [[ $# -gt 0 && -z "$_argc_next" ]]; do
        _argc_key="${1%%=*}"
        case "$_argc_key" in
            '--help' | '-help' | '-h')
                _argc_help_3
                builtin exit 0
                ;;
            '--')
                builtin shift
                _argc_dash=${#argc__positionals[@]}
                argc__positionals+=("$@")
                builtin set --
                ;;
            *)
                argc__positionals+=("$1")
                builtin shift
                ;;
        esac
    done
    if [[ ${#argc__positionals[@]} -eq 1 && "${argc__positionals[0]}" == help && "$_argc_dash" -lt 0 ]]; then
        _argc_help_3
        builtin exit 0
    fi
    if [[ -z "${LLM_OUTPUT-}" ]]; then
        LLM_OUTPUT='/dev/stdout'
        builtin export LLM_OUTPUT
    fi
    argc__fn='list_tables'
    builtin return 0
}

_argc_help_4() {
    builtin printf '%s\n' 'Show the columns of a table, and how its rows are identified and connected

USAGE:  describe_table --table-name <TABLE-NAME>

OPTIONS:
      --table-name <TABLE-NAME>  Name of the table, with its schema where that is needed
  -h, --help                     Print help

ENVIRONMENTS:
  LLM_OUTPUT  Where the result goes [default: /dev/stdout]'
}

# describe_table
_argc_parse_4() {
    builtin local _argc_key _argc_next= _argc_plus=
    while [[ $# -gt 0 && -z "$_argc_next" ]]; do
        _argc_key="${1%%=*}"
        case "$_argc_key" in
            '--help' | '-help' | '-h')
                _argc_help_4
                builtin exit 0
                ;;
            '--')
                builtin shift
                _argc_dash=${#argc__positionals[@]}
                argc__positionals+=("$@")
                builtin set --
                ;;
            '--table-name')
                _argc_take 1 1 '' '--table-name <TABLE-NAME>' "$@"
                builtin shift "$_argc_used"
                if [[ -n "${argc_table_name-}" ]]; then
                    _argc_die 'error: the argument `--table-name` cannot be used multiple times'
                fi
                argc_table_name="${_argc_values[0]-}"
                ;;
            *)
                if _argc_is_option "$1"; then
                    _argc_die "error: unexpected argument \`$_argc_key\` found"
                fi
                argc__positionals+=("$1")
                builtin shift
                ;;
        esac
    done
    if [[ -z "${argc_table_name-}" ]]; then
        _argc_missing+=('  --table-name <TABLE-NAME>')
    fi
    if [[ ${#argc__positionals[@]} -eq 1 && "${argc__positionals[0]}" == help && "$_argc_dash" -lt 0 ]]; then
        _argc_help_4
        builtin exit 0
    fi
    if [[ -z "${LLM_OUTPUT-}" ]]; then
        LLM_OUTPUT='/dev/stdout'
        builtin export LLM_OUTPUT
    fi
    argc__fn='describe_table'
    builtin return 0
}

_argc_run() {
    builtin local _argc_values _argc_used _argc_missing _argc_unset _argc_tools _argc_absent _argc_at _argc_given
    builtin local _argc_dash=-1 _argc_word="${0##*/}"
    if [[ "${OSTYPE-}" == msys* || "${OSTYPE-}" == cygwin* ]] && (builtin set -o igncr) 2>/dev/null; then
        builtin set -o igncr # carriage returns of Windows programs
    fi
    argc__args=("${_argc_word%.sh}" "$@")
    argc__positionals=()
    argc__fn=
    _argc_missing=() _argc_unset=() _argc_tools=() _argc_absent=()
    builtin unset -v argc_query argc_table_name
    _argc_parse_0 "$@"
    if [[ ${#_argc_missing[@]} -gt 0 ]]; then
        _argc_die 'error: the following required arguments were not provided:' "${_argc_missing[@]}"
    fi
    if [[ ${#_argc_unset[@]} -gt 0 ]]; then
        _argc_die 'error: the following required environments were not provided:' "${_argc_unset[@]}"
    fi
    if [[ -n "$argc__fn" ]]; then
        "$argc__fn" ${argc__positionals[@]+"${argc__positionals[@]}"}
    fi
}

_argc_run "$@"
# ARGC-BUILD }
