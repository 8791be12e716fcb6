#!/usr/bin/env bash
# Tools that show what changed in a git repository.
set -euo pipefail

# @meta read-only
# @env LLM_OUTPUT=/dev/stdout Where the result goes

shared=${LLM_AGENT_ROOT_DIR:-$(dirname "$0")}/../.shared/utils.sh
[ -f "$shared" ] || shared=${LLM_ROOT_DIR:-}/agents/.shared/utils.sh
[ -f "$shared" ] || { echo "$shared is missing. The user can restore it with: loki --install agents" >&2 && exit 1; }
# shellcheck source=../.shared/utils.sh
. "$shared"

# @cmd Show the diff to review: against base, else of staged changes, else of unstaged ones, else of the last commit
# @option --base Branch, tag or commit to compare with; its common ancestor with HEAD counts
get_diff() {
	enter_repository
	choose_changes "${argc_base:-}"
	{
		printf '# %s\n' "$chosen"
		show_changes
	} >>"$LLM_OUTPUT"
}

# @cmd List the files of that diff, each with what happened to it and how many lines were added and removed
# @option --base Branch, tag or commit to compare with; its common ancestor with HEAD counts
get_changed_files() {
	enter_repository
	choose_changes "${argc_base:-}"
	{
		printf '# %s\n' "$chosen"
		join_counts | while IFS=$'\t' read -r kind added removed path; do
			case $added in
			-) note=', binary' ;;
			*)
				note=
				case $kind in
				M) [ -n "$(show_changes -w --ignore-blank-lines -- "$path")" ] || note=', whitespace only' ;;
				esac
				;;
			esac
			printf '%s %s (+%s -%s%s)\n' "$kind" "$path" "$added" "$removed" "$note"
		done
	} >>"$LLM_OUTPUT"
}

# @cmd Show the kind of the project, its commands for building, testing and checking, and its files
get_project_info() {
	enter_project
	show_project >>"$LLM_OUTPUT"
}

# safe_git is git without the programs that a repository can configure.
safe_git() { git --no-pager -c core.fsmonitor=false -c core.quotePath=false "$@"; }

enter_repository() {
	enter_project
	safe_git rev-parse --git-dir >/dev/null 2>&1 || fail "$project is not in a git repository."
}

# choose_changes BASE sets changes, the arguments of git diff, and chosen, which says what they are.
choose_changes() {
	local ancestor
	if [ -n "$1" ]; then
		case $1 in
		-*) fail "$1 is not a branch, tag or commit." ;;
		esac
		safe_git rev-parse --verify --quiet "$1^{commit}" >/dev/null || fail "$1 is not a branch, tag or commit of this repository."
		ancestor=$(safe_git merge-base "$1" HEAD 2>/dev/null) || ancestor=$1
		changes=("$ancestor") chosen="All changes since $1, committed or not"
	elif ! safe_git diff --quiet --cached --no-ext-diff; then
		changes=(--cached) chosen="The staged changes"
	elif ! safe_git diff --quiet --no-ext-diff; then
		changes=() chosen="The changes that are not staged"
	elif safe_git rev-parse --verify --quiet 'HEAD^{commit}' >/dev/null; then
		ancestor=$(safe_git rev-parse --verify --quiet 'HEAD~1^{commit}') || ancestor=$(safe_git hash-object -t tree /dev/null)
		changes=("$ancestor" HEAD) chosen="The last commit: $(safe_git log -1 --format='%h %s')"
	else
		fail "There is nothing to review: the repository has no commit and no staged change."
	fi
}

# show_changes ARGUMENTS... is git diff of what choose_changes chose.
show_changes() {
	local options=() paths=()
	while [ $# -gt 0 ]; do
		if [ "$1" = -- ]; then
			paths=("$@")
			break
		fi
		options+=("$1")
		shift
	done
	safe_git diff --no-color --no-ext-diff --no-textconv --relative ${options[@]+"${options[@]}"} ${changes[@]+"${changes[@]}"} ${paths[@]+"${paths[@]}"}
}

# join_counts prints, with tabs between: what happened, lines added, lines removed, path. A file
# that was renamed counts as a new one.
join_counts() {
	{
		show_changes --no-renames --name-status | sed 's/^/s	/'
		show_changes --no-renames --numstat | sed 's/^/n	/'
	} | awk -F '\t' '
		$1 == "s" { kind[$3] = $2; next }
		{ printf "%s\t%s\t%s\t%s\n", kind[$4], $2, $3, $4 }'
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
  get_diff           Show the diff to review: against base, else of staged changes, else of unstaged ones, else of the last commit [aliases: get-diff]
  get_changed_files  List the files of that diff, each with what happened to it and how many lines were added and removed [aliases: get-changed-files]
  get_project_info   Show the kind of the project, its commands for building, testing and checking, and its files [aliases: get-project-info]

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
                    'get_diff' | 'get-diff')
                        builtin shift
                        _argc_next=_argc_parse_1
                        ;;
                    'get_changed_files' | 'get-changed-files')
                        builtin shift
                        _argc_next=_argc_parse_2
                        ;;
                    'get_project_info' | 'get-project-info')
                        builtin shift
                        _argc_next=_argc_parse_3
                        ;;
                    'help')
                        case "${2-}" in
                            'get_diff' | 'get-diff')
                                _argc_help_1
                                ;;
                            'get_changed_files' | 'get-changed-files')
                                _argc_help_2
                                ;;
                            'get_project_info' | 'get-project-info')
                                _argc_help_3
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
                        _argc_die 'error: `` requires a subcommand but one was not provided' '  [subcommands: get_diff, get_changed_files, get_project_info]'
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
    builtin printf '%s\n' 'Show the diff to review: against base, else of staged changes, else of unstaged ones, else of the last commit

USAGE:  get_diff [OPTIONS]

OPTIONS:
      --base <BASE>  Branch, tag or commit to compare with; its common ancestor with HEAD counts
  -h, --help         Print help

ENVIRONMENTS:
  LLM_OUTPUT  Where the result goes [default: /dev/stdout]'
}

# get_diff
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
            '--base')
                _argc_take 1 1 '' '--base <BASE>' "$@"
                builtin shift "$_argc_used"
                if [[ -n "${argc_base-}" ]]; then
                    _argc_die 'error: the argument `--base` cannot be used multiple times'
                fi
                argc_base="${_argc_values[0]-}"
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
    if [[ ${#argc__positionals[@]} -eq 1 && "${argc__positionals[0]}" == help && "$_argc_dash" -lt 0 ]]; then
        _argc_help_1
        builtin exit 0
    fi
    if [[ -z "${LLM_OUTPUT-}" ]]; then
        LLM_OUTPUT='/dev/stdout'
        builtin export LLM_OUTPUT
    fi
    argc__fn='get_diff'
    builtin return 0
}

_argc_help_2() {
    builtin printf '%s\n' 'List the files of that diff, each with what happened to it and how many lines were added and removed

USAGE:  get_changed_files [OPTIONS]

OPTIONS:
      --base <BASE>  Branch, tag or commit to compare with; its common ancestor with HEAD counts
  -h, --help         Print help

ENVIRONMENTS:
  LLM_OUTPUT  Where the result goes [default: /dev/stdout]'
}

# get_changed_files
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
            '--base')
                _argc_take 1 1 '' '--base <BASE>' "$@"
                builtin shift "$_argc_used"
                if [[ -n "${argc_base-}" ]]; then
                    _argc_die 'error: the argument `--base` cannot be used multiple times'
                fi
                argc_base="${_argc_values[0]-}"
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
    if [[ ${#argc__positionals[@]} -eq 1 && "${argc__positionals[0]}" == help && "$_argc_dash" -lt 0 ]]; then
        _argc_help_2
        builtin exit 0
    fi
    if [[ -z "${LLM_OUTPUT-}" ]]; then
        LLM_OUTPUT='/dev/stdout'
        builtin export LLM_OUTPUT
    fi
    argc__fn='get_changed_files'
    builtin return 0
}

_argc_help_3() {
    builtin printf '%s\n' 'Show the kind of the project, its commands for building, testing and checking, and its files

USAGE:  get_project_info

ENVIRONMENTS:
  LLM_OUTPUT  Where the result goes [default: /dev/stdout]'
}

# get_project_info
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
    argc__fn='get_project_info'
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
    builtin unset -v argc_base
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
