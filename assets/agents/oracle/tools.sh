#!/usr/bin/env bash
# Tools that read a project and its history.
set -euo pipefail

# @meta read-only
# @env LLM_OUTPUT=/dev/stdout Where the result goes

shared=${LLM_AGENT_ROOT_DIR:-$(dirname "$0")}/../.shared/utils.sh
[ -f "$shared" ] || shared=${LLM_ROOT_DIR:-}/agents/.shared/utils.sh
[ -f "$shared" ] || { echo "$shared is missing. The user can restore it with: loki --install agents" >&2 && exit 1; }
# shellcheck source=../.shared/utils.sh
. "$shared"

# @cmd Read a file of the project, with line numbers; at most 2000 lines
# @option --path! Path of the file, relative to the project
read_file() {
	enter_project
	show_file "$argc_path" 2000 >>"$LLM_OUTPUT"
}

# @cmd Show the kind of the project, its commands for building, testing and checking, and its files
get_project_info() {
	enter_project
	show_project >>"$LLM_OUTPUT"
}

# @cmd Find lines in the files of the project, returned as path:line:text
# @option --pattern! Extended regular expression (POSIX)
# @option --file-type Extension of the files to search, such as go
search_code() {
	enter_project
	search_text "$argc_pattern" "${argc_file_type:-}" >>"$LLM_OUTPUT"
}

# @cmd Run a command that only reads, such as git log, git diff, wc or sort, in the directory of the project. Commands that write, run programs of the project or leave it are refused
# @meta timeout 60s
# @option --command! The command line; pipes and && are allowed
analyze_with_command() {
	enter_project
	call_tool execute_command command "$argc_command" >>"$LLM_OUTPUT" ||
		fail "The command was not run: it is not known to be a command that only reads. Use other commands, or read_file and search_code."
}

# @cmd List a directory of the project with the sizes of files
# @option --path=. Path of the directory, relative to the project
list_directory() {
	enter_project
	inside "$argc_path"
	[ -d "$path" ] || fail "$argc_path is a file. Read it with read_file."
	ls -Ap -l "./$path" | LC_ALL=C awk '
		NR > 1 && $1 !~ /^total/ {
			size = $5
			sub(/^[^ ]+ +[^ ]+ +[^ ]+ +[^ ]+ +[^ ]+ +[^ ]+ +[^ ]+ +[^ ]+ /, "")
			if (/\/$/) print; else printf "%s (%s bytes)\n", $0, size
		}
		END { if (NR < 2) print "The directory is empty." }' >>"$LLM_OUTPUT"
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
  read_file             Read a file of the project, with line numbers; at most 2000 lines [aliases: read-file]
  get_project_info      Show the kind of the project, its commands for building, testing and checking, and its files [aliases: get-project-info]
  search_code           Find lines in the files of the project, returned as path:line:text [aliases: search-code]
  analyze_with_command  Run a command that only reads, such as git log, git diff, wc or sort, in the directory of the project. Commands that write, run programs of the project or leave it are refused [aliases: analyze-with-command]
  list_directory        List a directory of the project with the sizes of files [aliases: list-directory]

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
                    'read_file' | 'read-file')
                        builtin shift
                        _argc_next=_argc_parse_1
                        ;;
                    'get_project_info' | 'get-project-info')
                        builtin shift
                        _argc_next=_argc_parse_2
                        ;;
                    'search_code' | 'search-code')
                        builtin shift
                        _argc_next=_argc_parse_3
                        ;;
                    'analyze_with_command' | 'analyze-with-command')
                        builtin shift
                        _argc_next=_argc_parse_4
                        ;;
                    'list_directory' | 'list-directory')
                        builtin shift
                        _argc_next=_argc_parse_5
                        ;;
                    'help')
                        case "${2-}" in
                            'read_file' | 'read-file')
                                _argc_help_1
                                ;;
                            'get_project_info' | 'get-project-info')
                                _argc_help_2
                                ;;
                            'search_code' | 'search-code')
                                _argc_help_3
                                ;;
                            'analyze_with_command' | 'analyze-with-command')
                                _argc_help_4
                                ;;
                            'list_directory' | 'list-directory')
                                _argc_help_5
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
                        _argc_die 'error: `` requires a subcommand but one was not provided' '  [subcommands: read_file, get_project_info, search_code, analyze_with_command, list_directory]'
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
    builtin printf '%s\n' 'Read a file of the project, with line numbers; at most 2000 lines

USAGE:  read_file --path <PATH>

OPTIONS:
      --path <PATH>  Path of the file, relative to the project
  -h, --help         Print help

ENVIRONMENTS:
  LLM_OUTPUT  Where the result goes [default: /dev/stdout]'
}

# read_file
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
            '--path')
                _argc_take 1 1 '' '--path <PATH>' "$@"
                builtin shift "$_argc_used"
                if [[ -n "${argc_path-}" ]]; then
                    _argc_die 'error: the argument `--path` cannot be used multiple times'
                fi
                argc_path="${_argc_values[0]-}"
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
    if [[ -z "${argc_path-}" ]]; then
        _argc_missing+=('  --path <PATH>')
    fi
    if [[ ${#argc__positionals[@]} -eq 1 && "${argc__positionals[0]}" == help && "$_argc_dash" -lt 0 ]]; then
        _argc_help_1
        builtin exit 0
    fi
    if [[ -z "${LLM_OUTPUT-}" ]]; then
        LLM_OUTPUT='/dev/stdout'
        builtin export LLM_OUTPUT
    fi
    argc__fn='read_file'
    builtin return 0
}

_argc_help_2() {
    builtin printf '%s\n' 'Show the kind of the project, its commands for building, testing and checking, and its files

USAGE:  get_project_info

ENVIRONMENTS:
  LLM_OUTPUT  Where the result goes [default: /dev/stdout]'
}

# get_project_info
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
            *)
                argc__positionals+=("$1")
                builtin shift
                ;;
        esac
    done
    if [[ ${#argc__positionals[@]} -eq 1 && "${argc__positionals[0]}" == help && "$_argc_dash" -lt 0 ]]; then
        _argc_help_2
        builtin exit 0
    fi
    if [[ -z "${LLM_OUTPUT-}" ]]; then
        LLM_OUTPUT='/dev/stdout'
        builtin export LLM_OUTPUT
    fi
    argc__fn='get_project_info'
    builtin return 0
}

_argc_help_3() {
    builtin printf '%s\n' 'Find lines in the files of the project, returned as path:line:text

USAGE:  search_code [OPTIONS] --pattern <PATTERN>

OPTIONS:
      --pattern <PATTERN>      Extended regular expression (POSIX)
      --file-type <FILE-TYPE>  Extension of the files to search, such as go
  -h, --help                   Print help

ENVIRONMENTS:
  LLM_OUTPUT  Where the result goes [default: /dev/stdout]'
}

# search_code
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
            '--pattern')
                _argc_take 1 1 '' '--pattern <PATTERN>' "$@"
                builtin shift "$_argc_used"
                if [[ -n "${argc_pattern-}" ]]; then
                    _argc_die 'error: the argument `--pattern` cannot be used multiple times'
                fi
                argc_pattern="${_argc_values[0]-}"
                ;;
            '--file-type')
                _argc_take 1 1 '' '--file-type <FILE-TYPE>' "$@"
                builtin shift "$_argc_used"
                if [[ -n "${argc_file_type-}" ]]; then
                    _argc_die 'error: the argument `--file-type` cannot be used multiple times'
                fi
                argc_file_type="${_argc_values[0]-}"
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
    if [[ -z "${argc_pattern-}" ]]; then
        _argc_missing+=('  --pattern <PATTERN>')
    fi
    if [[ ${#argc__positionals[@]} -eq 1 && "${argc__positionals[0]}" == help && "$_argc_dash" -lt 0 ]]; then
        _argc_help_3
        builtin exit 0
    fi
    if [[ -z "${LLM_OUTPUT-}" ]]; then
        LLM_OUTPUT='/dev/stdout'
        builtin export LLM_OUTPUT
    fi
    argc__fn='search_code'
    builtin return 0
}

_argc_help_4() {
    builtin printf '%s\n' 'Run a command that only reads, such as git log, git diff, wc or sort, in the directory of the project. Commands that write, run programs of the project or leave it are refused

USAGE:  analyze_with_command --command <COMMAND>

OPTIONS:
      --command <COMMAND>  The command line; pipes and && are allowed
  -h, --help               Print help

ENVIRONMENTS:
  LLM_OUTPUT  Where the result goes [default: /dev/stdout]'
}

# analyze_with_command
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
            '--command')
                _argc_take 1 1 '' '--command <COMMAND>' "$@"
                builtin shift "$_argc_used"
                if [[ -n "${argc_command-}" ]]; then
                    _argc_die 'error: the argument `--command` cannot be used multiple times'
                fi
                argc_command="${_argc_values[0]-}"
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
    if [[ -z "${argc_command-}" ]]; then
        _argc_missing+=('  --command <COMMAND>')
    fi
    if [[ ${#argc__positionals[@]} -eq 1 && "${argc__positionals[0]}" == help && "$_argc_dash" -lt 0 ]]; then
        _argc_help_4
        builtin exit 0
    fi
    if [[ -z "${LLM_OUTPUT-}" ]]; then
        LLM_OUTPUT='/dev/stdout'
        builtin export LLM_OUTPUT
    fi
    argc__fn='analyze_with_command'
    builtin return 0
}

_argc_help_5() {
    builtin printf '%s\n' 'List a directory of the project with the sizes of files

USAGE:  list_directory [OPTIONS]

OPTIONS:
      --path <PATH>  Path of the directory, relative to the project [default: .]
  -h, --help         Print help

ENVIRONMENTS:
  LLM_OUTPUT  Where the result goes [default: /dev/stdout]'
}

# list_directory
_argc_parse_5() {
    builtin local _argc_key _argc_next= _argc_plus=
    while [[ $# -gt 0 && -z "$_argc_next" ]]; do
        _argc_key="${1%%=*}"
        case "$_argc_key" in
            '--help' | '-help' | '-h')
                _argc_help_5
                builtin exit 0
                ;;
            '--')
                builtin shift
                _argc_dash=${#argc__positionals[@]}
                argc__positionals+=("$@")
                builtin set --
                ;;
            '--path')
                _argc_take 1 1 '' '--path <PATH>' "$@"
                builtin shift "$_argc_used"
                if [[ -n "${argc_path-}" ]]; then
                    _argc_die 'error: the argument `--path` cannot be used multiple times'
                fi
                argc_path="${_argc_values[0]-}"
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
    if [[ -z "${argc_path-}" ]]; then
        argc_path='.'
    fi
    if [[ ${#argc__positionals[@]} -eq 1 && "${argc__positionals[0]}" == help && "$_argc_dash" -lt 0 ]]; then
        _argc_help_5
        builtin exit 0
    fi
    if [[ -z "${LLM_OUTPUT-}" ]]; then
        LLM_OUTPUT='/dev/stdout'
        builtin export LLM_OUTPUT
    fi
    argc__fn='list_directory'
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
    builtin unset -v argc_command argc_file_type argc_path argc_pattern
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
