#!/usr/bin/env bash
# Tools that read the code of a project.
set -euo pipefail

# @meta read-only
# @env LLM_OUTPUT=/dev/stdout Where the result goes

shared=${LLM_AGENT_ROOT_DIR:-$(dirname "$0")}/../.shared/utils.sh
[ -f "$shared" ] || shared=${LLM_ROOT_DIR:-}/agents/.shared/utils.sh
[ -f "$shared" ] || { echo "$shared is missing. The user can restore it with: loki --install agents" >&2 && exit 1; }
# shellcheck source=../.shared/utils.sh
. "$shared"

# @cmd List the files and directories of the project to a depth of 3
get_structure() {
	enter_project
	project_tree >>"$LLM_OUTPUT"
}

# @cmd Find files of the project by name, such as *.go or *config*. A pattern with a slash is about the path from the project, such as cmd/*/main.go
# @option --pattern! Shell pattern with * ? and [...]
search_files() {
	enter_project
	local by=(-name "$argc_pattern")
	case $argc_pattern in
	*/*) by=(-path "./${argc_pattern#./}") ;;
	esac
	find_files -type f "${by[@]}" -print 2>/dev/null | LC_ALL=C sort | LC_ALL=C awk '
		{ sub(/^\.\//, ""); if (NR <= 100) print }
		END {
			if (NR > 100) printf "[%d more files; use a narrower pattern]\n", NR - 100
			if (NR == 0) print "No file matches."
		}' >>"$LLM_OUTPUT"
}

# @cmd Find lines in the files of the project, returned as path:line:text
# @option --pattern! Extended regular expression (POSIX)
# @option --file-type Extension of the files to search, such as go
search_content() {
	enter_project
	search_text "$argc_pattern" "${argc_file_type:-}" >>"$LLM_OUTPUT"
}

# @cmd Read the beginning of a file of the project, with line numbers
# @option --path! Path of the file, relative to the project
# @option --lines=200 <INT> How many lines to read
read_file() {
	enter_project
	show_file "$argc_path" "$argc_lines" >>"$LLM_OUTPUT"
}

# @cmd Find files that are like a given one: the same kind with a word of its name, or in the same directory. Good for finding a pattern to follow
# @option --path! Path of the file, relative to the project
find_similar() {
	enter_project
	inside "$argc_path"
	local base=${path##*/} ext
	case $base in
	?*.*) ext=${base##*.} ;;
	*) ext= ;;
	esac
	find_files -type f -name "*${ext:+.$ext}" -print 2>/dev/null | LC_ALL=C sort | LC_ALL=C awk -v file="$path" '
		function name(p) { sub(/.*\//, "", p); sub(/\.[^.]*$/, "", p); return tolower(p) }
		function dir(p) { return sub(/\/[^\/]*$/, "", p) ? p : "." }
		BEGIN { words = split(name(file), word, /[^a-z0-9]+/) }
		{
			sub(/^\.\//, "")
			if ($0 == file) next
			score = dir($0) == dir(file) ? 1 : 0
			for (i = 1; i <= words; i++)
				if (length(word[i]) > 2 && index(name($0), word[i])) score += 2
			if (score) printf "%d %s\n", score, $0
		}' | LC_ALL=C sort -k1,1nr -k2 | LC_ALL=C awk '
		NR <= 20 { sub(/^[0-9]+ /, ""); print }
		END { if (NR == 0) print "No similar file." }' >>"$LLM_OUTPUT"
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
  get_structure   List the files and directories of the project to a depth of 3 [aliases: get-structure]
  search_files    Find files of the project by name, such as *.go or *config*. A pattern with a slash is about the path from the project, such as cmd/*/main.go [aliases: search-files]
  search_content  Find lines in the files of the project, returned as path:line:text [aliases: search-content]
  read_file       Read the beginning of a file of the project, with line numbers [aliases: read-file]
  find_similar    Find files that are like a given one: the same kind with a word of its name, or in the same directory. Good for finding a pattern to follow [aliases: find-similar]

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
                    'get_structure' | 'get-structure')
                        builtin shift
                        _argc_next=_argc_parse_1
                        ;;
                    'search_files' | 'search-files')
                        builtin shift
                        _argc_next=_argc_parse_2
                        ;;
                    'search_content' | 'search-content')
                        builtin shift
                        _argc_next=_argc_parse_3
                        ;;
                    'read_file' | 'read-file')
                        builtin shift
                        _argc_next=_argc_parse_4
                        ;;
                    'find_similar' | 'find-similar')
                        builtin shift
                        _argc_next=_argc_parse_5
                        ;;
                    'help')
                        case "${2-}" in
                            'get_structure' | 'get-structure')
                                _argc_help_1
                                ;;
                            'search_files' | 'search-files')
                                _argc_help_2
                                ;;
                            'search_content' | 'search-content')
                                _argc_help_3
                                ;;
                            'read_file' | 'read-file')
                                _argc_help_4
                                ;;
                            'find_similar' | 'find-similar')
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
                        _argc_die 'error: `` requires a subcommand but one was not provided' '  [subcommands: get_structure, search_files, search_content, read_file, find_similar]'
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
    builtin printf '%s\n' 'List the files and directories of the project to a depth of 3

USAGE:  get_structure

ENVIRONMENTS:
  LLM_OUTPUT  Where the result goes [default: /dev/stdout]'
}

# get_structure
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
            *)
                argc__positionals+=("$1")
                builtin shift
                ;;
        esac
    done
    if [[ ${#argc__positionals[@]} -eq 1 && "${argc__positionals[0]}" == help && "$_argc_dash" -lt 0 ]]; then
        _argc_help_1
        builtin exit 0
    fi
    if [[ -z "${LLM_OUTPUT-}" ]]; then
        LLM_OUTPUT='/dev/stdout'
        builtin export LLM_OUTPUT
    fi
    argc__fn='get_structure'
    builtin return 0
}

_argc_help_2() {
    builtin printf '%s\n' 'Find files of the project by name, such as *.go or *config*. A pattern with a slash is about the path from the project, such as cmd/*/main.go

USAGE:  search_files --pattern <PATTERN>

OPTIONS:
      --pattern <PATTERN>  Shell pattern with * ? and [...]
  -h, --help               Print help

ENVIRONMENTS:
  LLM_OUTPUT  Where the result goes [default: /dev/stdout]'
}

# search_files
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
            '--pattern')
                _argc_take 1 1 '' '--pattern <PATTERN>' "$@"
                builtin shift "$_argc_used"
                if [[ -n "${argc_pattern-}" ]]; then
                    _argc_die 'error: the argument `--pattern` cannot be used multiple times'
                fi
                argc_pattern="${_argc_values[0]-}"
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
        _argc_help_2
        builtin exit 0
    fi
    if [[ -z "${LLM_OUTPUT-}" ]]; then
        LLM_OUTPUT='/dev/stdout'
        builtin export LLM_OUTPUT
    fi
    argc__fn='search_files'
    builtin return 0
}

_argc_help_3() {
    builtin printf '%s\n' 'Find lines in the files of the project, returned as path:line:text

USAGE:  search_content [OPTIONS] --pattern <PATTERN>

OPTIONS:
      --pattern <PATTERN>      Extended regular expression (POSIX)
      --file-type <FILE-TYPE>  Extension of the files to search, such as go
  -h, --help                   Print help

ENVIRONMENTS:
  LLM_OUTPUT  Where the result goes [default: /dev/stdout]'
}

# search_content
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
    argc__fn='search_content'
    builtin return 0
}

_argc_help_4() {
    builtin printf '%s\n' 'Read the beginning of a file of the project, with line numbers

USAGE:  read_file [OPTIONS] --path <PATH>

OPTIONS:
      --path <PATH>  Path of the file, relative to the project
      --lines <INT>  How many lines to read [default: 200]
  -h, --help         Print help

ENVIRONMENTS:
  LLM_OUTPUT  Where the result goes [default: /dev/stdout]'
}

# read_file
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
            '--path')
                _argc_take 1 1 '' '--path <PATH>' "$@"
                builtin shift "$_argc_used"
                if [[ -n "${argc_path-}" ]]; then
                    _argc_die 'error: the argument `--path` cannot be used multiple times'
                fi
                argc_path="${_argc_values[0]-}"
                ;;
            '--lines')
                _argc_take 1 1 '' '--lines <INT>' "$@"
                builtin shift "$_argc_used"
                if [[ -n "${argc_lines-}" ]]; then
                    _argc_die 'error: the argument `--lines` cannot be used multiple times'
                fi
                argc_lines="${_argc_values[0]-}"
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
    if [[ -z "${argc_lines-}" ]]; then
        argc_lines='200'
    fi
    if [[ -z "${argc_path-}" ]]; then
        _argc_missing+=('  --path <PATH>')
    fi
    if [[ ${#argc__positionals[@]} -eq 1 && "${argc__positionals[0]}" == help && "$_argc_dash" -lt 0 ]]; then
        _argc_help_4
        builtin exit 0
    fi
    if [[ -z "${LLM_OUTPUT-}" ]]; then
        LLM_OUTPUT='/dev/stdout'
        builtin export LLM_OUTPUT
    fi
    argc__fn='read_file'
    builtin return 0
}

_argc_help_5() {
    builtin printf '%s\n' 'Find files that are like a given one: the same kind with a word of its name, or in the same directory. Good for finding a pattern to follow

USAGE:  find_similar --path <PATH>

OPTIONS:
      --path <PATH>  Path of the file, relative to the project
  -h, --help         Print help

ENVIRONMENTS:
  LLM_OUTPUT  Where the result goes [default: /dev/stdout]'
}

# find_similar
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
        _argc_missing+=('  --path <PATH>')
    fi
    if [[ ${#argc__positionals[@]} -eq 1 && "${argc__positionals[0]}" == help && "$_argc_dash" -lt 0 ]]; then
        _argc_help_5
        builtin exit 0
    fi
    if [[ -z "${LLM_OUTPUT-}" ]]; then
        LLM_OUTPUT='/dev/stdout'
        builtin export LLM_OUTPUT
    fi
    argc__fn='find_similar'
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
    builtin unset -v argc_file_type argc_lines argc_path argc_pattern
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
