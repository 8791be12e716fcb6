#!/usr/bin/env bash
# A tool that shows the files of a project.
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

# ARGC-BUILD {
# Generated from the comment tags; changes are lost.

_argc_die() {
    builtin printf '%s\n' "$@" >&2
    builtin exit 1
}

_argc_help_0() {
    builtin printf '%s\n' 'USAGE:  <COMMAND>

COMMANDS:
  get_structure  List the files and directories of the project to a depth of 3 [aliases: get-structure]

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
                    'help')
                        case "${2-}" in
                            'get_structure' | 'get-structure')
                                _argc_help_1
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
                        _argc_die 'error: `` requires a subcommand but one was not provided' '  [subcommands: get_structure]'
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
