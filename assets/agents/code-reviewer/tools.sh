#!/usr/bin/env bash
# Tools that show what changed in a git repository.
set -euo pipefail

# @meta read-only
# @sandbox read
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

eval "$(loki --argc-eval "$0" "$@")"
