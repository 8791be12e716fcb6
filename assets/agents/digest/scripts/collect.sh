#!/usr/bin/env bash
# collect: finds the text files that the prompt names and prints them as one JSON object:
#
#   files            [{path, text}], sorted by path within each path of the prompt,
#                    with a note where the text was cut
#   file_count       number of files
#   skipped          number of files that are empty, binary or unreadable; PDF, RTF and
#                    PostScript count as binary
#   left_out         number of files beyond the limits, not looked at
#   root, tally      what was asked for, and in words what was found
#   summary_request  the instruction for summarizing one file
#   message, _next   why there is nothing to do, and the node that says so
#
# The prompt is a file or a directory, or several of them: one on each line, or with
# blanks between. Nothing means the current directory. Hidden files and directories
# and node_modules are not entered.
#
# Variables: LLM_AGENT_VAR_SENTENCES, LLM_AGENT_VAR_MAX_FILES, LLM_AGENT_VAR_MAX_BYTES.
#
# POSIX shell and tools only, and few processes: one dd for each file, which also
# keeps the rest of a large file from being read.

LC_ALL=C # bytes are bytes, and the order is the same everywhere
export LC_ALL
unset CDPATH

case $0 in
*/*) here=${0%/*} ;;
*) here=. ;;
esac

sentences=${LLM_AGENT_VAR_SENTENCES:-2}
max_files=${LLM_AGENT_VAR_MAX_FILES:-500}
max_bytes=${LLM_AGENT_VAR_MAX_BYTES:-60000}
DIGEST_ROOT="" DIGEST_PROBLEM=""
export DIGEST_ROOT DIGEST_PROBLEM

# report prints the JSON object for the stream on stdin.
report() {
	awk -v nonce="$nonce" -v sentences="$sentences" -v max_files="$max_files" -v max_bytes="$max_bytes" \
		-f "$here/json.awk" -f "$here/collect.awk"
}

# give_up ends the digest with a message for the user.
give_up() {
	DIGEST_PROBLEM=$1
	report </dev/null
	exit 0
}

# check_number NAME VALUE accepts a whole number from 1 to 9999999.
check_number() {
	case $2 in
	'' | 0* | *[!0-9]* | ????????*)
		sentences=2 # is printed, and may be what is wrong
		give_up "The variable $1 must be a whole number from 1 to 9999999, not \"$2\"."
		;;
	esac
}

# find_path sets path to the place that $1 means, and tells whether it is there.
find_path() {
	path=$1
	case $path in
	'~') path=$HOME ;;
	\~/*) path=$HOME/${path#??} ;;
	esac
	[ -e "$path" ]
}

# check_root gives up unless the files at $1 can be listed.
check_root() {
	if [ -d "$1" ]; then
		if [ ! -r "$1" ] || [ ! -x "$1" ]; then
			give_up "The directory $1 cannot be read."
		fi
	elif [ ! -f "$1" ]; then
		give_up "$1 is neither a file nor a directory."
	elif [ ! -r "$1" ]; then
		give_up "The file $1 cannot be read."
	fi
}

# list prints the names of the files at root $1, one on each line, sorted.
list() {
	root=$1
	while :; do
		case $root in
		.//*) root=./${root#.//} ;;
		./?*) root=${root#./} ;;
		?*/) root=${root%/} ;;
		*) break ;;
		esac
	done
	if [ ! -d "$root" ]; then
		prefix=$root awk "$encode" ./
		return
	fi
	case $root in
	.) prefix= ;;
	/) prefix=/ ;;
	*) prefix=$root/ ;;
	esac
	export prefix
	case $root in
	/* | [A-Za-z]:*) ;;
	*) root=./$root ;;
	esac
	# Searching from the inside keeps odd names of the root away from find's options.
	(
		cd "$root" || exit
		find . -name . -o \( -name '.*' -o -name node_modules \) -prune -o -type f -exec awk "$encode" {} +
	) | sort -u
}

# encode is an awk program that prints its arguments, which begin with ./, one on each
# line, with \\ for a backslash and \n for a line end.
# shellcheck disable=SC2016 # awk expands it
encode='BEGIN {
	for (i = 1; i < ARGC; i++) {
		name = ENVIRON["prefix"] substr(ARGV[i], 3)
		gsub(/\\/, "\\\\&", name)
		gsub(/\n/, "\\n", name)
		print name
	}
}'

# list_all numbers the names of all files, each of which it prints once.
list_all() {
	for root; do
		list "$root"
	done | awk '!seen[$0]++ { name[++n] = $0 } END { for (i = 1; i <= n; i++) print i, n, name[i] }'
}

# stream writes the files as collect.awk reads them. The mark begins with a zero byte,
# which text does not hold, and cannot be guessed by who writes a file. An end of the
# reader, who has seen enough, ends the loop.
stream() {
	list_all "$@" | while IFS= read -r entry; do
		name=${entry#* }
		name=${name#* }
		case $name in
		*\\*)
			name=$(printf '%b.' "$name")
			name=${name%.}
			;;
		esac
		printf '\n\000%s %s\n' "$nonce" "$entry" 2>/dev/null || exit
		[ -r "$name" ] && dd bs=4096 count=$((max_bytes / 4096 + 1)) <"$name" 2>/dev/null
	done
	printf '\n\000%s\n' "$nonce" 2>/dev/null
}

nonce=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')

check_number sentences "$sentences"
check_number max_files "$max_files"
check_number max_bytes "$max_bytes"

prompt=$(
	if [ -n "${GRAPH_STATE_FILE:-}" ]; then
		awk -f "$here/json.awk" -f "$here/prompt.awk" <"$GRAPH_STATE_FILE"
	else
		printf '%s' "${GRAPH_STATE:-}" | awk -f "$here/json.awk" -f "$here/prompt.awk"
	fi
)

set -f # what the user writes are names, not patterns
set --
if find_path "${prompt:-.}"; then
	set -- "$path"
else
	while IFS= read -r line; do
		# A line is one path with blanks in it, or several paths.
		line=${line#"${line%%[! 	]*}"}
		line=${line%"${line##*[! 	]}"}
		if find_path "$line"; then
			set -- "$@" "$path"
			continue
		fi
		for word in $line; do
			find_path "$word" || give_up "There is no file or directory called $path in $PWD. The prompt of this agent is a path, as in: loki -a digest ./docs"
			set -- "$@" "$path"
		done
	done <<PROMPT
$prompt
PROMPT
fi

for path; do
	check_root "$path"
	DIGEST_ROOT=${DIGEST_ROOT:+$DIGEST_ROOT, }$path
done

stream "$@" | tr '\000\376\377' '\376\377\377' | report
