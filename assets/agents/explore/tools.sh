#!/usr/bin/env bash
# Tools that read the code of a project.
set -euo pipefail

# @meta read-only
# @sandbox read
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

eval "$(loki --argc-eval "$0" "$@")"
