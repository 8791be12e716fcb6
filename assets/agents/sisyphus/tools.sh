#!/usr/bin/env bash
# Tools that know how a project is built and tested.
set -euo pipefail

# @env LLM_OUTPUT=/dev/stdout Where the result goes

shared=${LLM_AGENT_ROOT_DIR:-$(dirname "$0")}/../.shared/utils.sh
[ -f "$shared" ] || shared=${LLM_ROOT_DIR:-}/agents/.shared/utils.sh
[ -f "$shared" ] || { echo "$shared is missing. The user can restore it with: loki --install agents" >&2 && exit 1; }
# shellcheck source=../.shared/utils.sh
. "$shared"
ask_model=yes keep_project=yes

# @cmd Show the kind of the project, its commands for building, testing and checking, and its files
get_project_info() {
	enter_project
	show_project >>"$LLM_OUTPUT"
}

# @cmd Run the build command of the project, or its check command if there is no build
# @meta destructive
# @meta timeout 300s
run_build() {
	enter_project
	detect_project
	run_check build 16000 "${project_build:-$project_check}" >>"$LLM_OUTPUT"
}

# @cmd Run the tests of the project
# @meta destructive
# @meta timeout 600s
run_tests() {
	enter_project
	detect_project
	run_check test 16000 "$project_test" >>"$LLM_OUTPUT"
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
  get_project_info  Show the kind of the project, its commands for building, testing and checking, and its files [aliases: get-project-info]
  run_build         Run the build command of the project, or its check command if there is no build [aliases: run-build]
  run_tests         Run the tests of the project [aliases: run-tests]

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
                    'get_project_info' | 'get-project-info')
                        builtin shift
                        _argc_next=_argc_parse_1
                        ;;
                    'run_build' | 'run-build')
                        builtin shift
                        _argc_next=_argc_parse_2
                        ;;
                    'run_tests' | 'run-tests')
                        builtin shift
                        _argc_next=_argc_parse_3
                        ;;
                    'help')
                        case "${2-}" in
                            'get_project_info' | 'get-project-info')
                                _argc_help_1
                                ;;
                            'run_build' | 'run-build')
                                _argc_help_2
                                ;;
                            'run_tests' | 'run-tests')
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
                        _argc_die 'error: `` requires a subcommand but one was not provided' '  [subcommands: get_project_info, run_build, run_tests]'
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
    builtin printf '%s\n' 'Show the kind of the project, its commands for building, testing and checking, and its files

USAGE:  get_project_info

ENVIRONMENTS:
  LLM_OUTPUT  Where the result goes [default: /dev/stdout]'
}

# get_project_info
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
    argc__fn='get_project_info'
    builtin return 0
}

_argc_help_2() {
    builtin printf '%s\n' 'Run the build command of the project, or its check command if there is no build

USAGE:  run_build

ENVIRONMENTS:
  LLM_OUTPUT  Where the result goes [default: /dev/stdout]'
}

# run_build
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
    argc__fn='run_build'
    builtin return 0
}

_argc_help_3() {
    builtin printf '%s\n' 'Run the tests of the project

USAGE:  run_tests

ENVIRONMENTS:
  LLM_OUTPUT  Where the result goes [default: /dev/stdout]'
}

# run_tests
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
    argc__fn='run_tests'
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
