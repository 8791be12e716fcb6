#!/usr/bin/env bash
# Tools that read a project and its history.
set -euo pipefail

# @meta read-only
# @sandbox read
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
# @sandbox full
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

eval "$(loki --argc-eval "$0" "$@")"
