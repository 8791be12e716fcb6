# shellcheck shell=bash
# What the scripts of several agents have in common. Bash 3.2 or newer and the standard tools
# of any Unix; nothing here needs jq, curl or GNU.
#
#   enter_project           goes to the agent's project, and says so if that is not possible
#   inside PATH             sets path, or fails, see there
#   json_string             a JSON string of the text on standard input
#   detect_project          finds out how the project is built and tested
#   run_limited BYTES CMD   runs a command, and keeps the end of what it prints

# Colors are noise for models.
unset CLICOLOR_FORCE FORCE_COLOR CDPATH
export NO_COLOR=1

# fail writes a message for the model and ends the script.
fail() {
	printf '%s\n' "$*" >&2
	exit 1
}

# enter_project makes the directory of the variable project_dir the working directory.
enter_project() {
	cd -- "${LLM_AGENT_VAR_PROJECT_DIR:-.}" 2>/dev/null ||
		fail "The project directory ${LLM_AGENT_VAR_PROJECT_DIR:-.} cannot be entered. Its place is the agent variable project_dir."
	project=$(pwd -P)
}

# inside PATH sets path to PATH as it is seen from the project, "." for the project itself. It fails
# for a path that is not there, or that leads out of the project, also by a symbolic link.
inside() {
	local wanted=$1 dir base
	case $wanted in
	/*) ;;
	*) wanted=$project/$wanted ;;
	esac
	[ -e "$wanted" ] || fail "There is no file or directory $1 in the project. Paths are relative to $project."
	if [ -d "$wanted" ]; then
		dir=$wanted base=
	else
		# A link counts as what it leads to.
		while [ -L "$wanted" ]; do
			dir=$(readlink "$wanted")
			case $dir in
			/*) wanted=$dir ;;
			*) wanted=$(dirname "$wanted")/$dir ;;
			esac
		done
		dir=$(dirname "$wanted") base=$(basename "$wanted")
	fi
	dir=$(cd -- "$dir" 2>/dev/null && pwd -P) || fail "$1 cannot be read."
	path=$dir${base:+/$base}
	case $path in
	"$project") path=. ;;
	"$project"/*) path=${path#"$project"/} ;;
	*) fail "$1 is outside of the project $project. This tool reads only there." ;;
	esac
}

# skipped are the directories that searches do not enter.
skipped=(.git node_modules target dist build vendor __pycache__ .venv venv .next .build)

# find_files ARGUMENTS... is find in the current directory, without the skipped ones.
find_files() {
	local prune=() name
	for name in "${skipped[@]}"; do
		prune+=(-o -name "$name")
	done
	find . -name . -o -type d \( "${prune[@]:1}" \) -prune -o "$@"
}

# project_tree prints the files of the project to a depth of 3, at most 300.
project_tree() {
	find_files \( -type f -o -type d \) -print -path './*/*/*' -prune 2>/dev/null | LC_ALL=C sort |
		LC_ALL=C awk '{ sub(/^\.\//, ""); if (NR <= 300) print } END { if (NR > 300) print "[" NR - 300 " more]" }'
}

# show_project prints what detect_project finds, and the files of the project.
show_project() {
	detect_project
	printf 'Type: %s\nBuild: %s\nTest: %s\nCheck: %s\n\nFiles:\n' \
		"$project_type" "${project_build:-none}" "${project_test:-none}" "${project_check:-none}"
	project_tree
}

# show_file PATH LINES prints the first lines of a file of the project with their numbers.
show_file() {
	case $2 in
	'' | 0* | *[!0-9]*) fail "lines must be a whole number above 0, not $2." ;;
	esac
	inside "$1"
	[ ! -d "$path" ] || fail "$1 is a directory. List it, or name a file in it."
	if ! grep -Iq . "$path" && [ -s "$path" ]; then
		fail "$1 is not a text file."
	fi
	LC_ALL=C awk -v limit="$2" '
		NR <= limit { printf "%d\t%s\n", NR, substr($0, 1, 2000) }
		END { if (NR > limit) printf "[%d more lines; ask for more with lines]\n", NR - limit }' "$path"
}

# search_text PATTERN [EXTENSION] prints the lines of text files that match an extended regular
# expression, with their places, at most 100.
search_text() {
	local status=0 wanted=(-type f)
	grep -E -e "$1" </dev/null >/dev/null 2>&1 || status=$?
	[ $status -le 1 ] || fail "$1 is not an extended regular expression (POSIX, as grep -E takes it)."
	[ -z "${2:-}" ] || wanted+=(-name "*.${2#.}")
	{ find_files "${wanted[@]}" -exec grep -nIE -e "$1" /dev/null {} + 2>/dev/null || true; } |
		LC_ALL=C awk '
			{ sub(/^\.\//, ""); if (NR <= 100) print substr($0, 1, 500) }
			END {
				if (NR > 100) printf "[%d more lines; use a narrower pattern]\n", NR - 100
				if (NR == 0) print "Nothing matches."
			}'
}

# json_string prints the text on standard input as a JSON string: what is not UTF-8, and control
# characters other than tabs and line ends, are left out.
json_string() {
	if command -v iconv >/dev/null 2>&1; then
		iconv -c -f UTF-8 -t UTF-8
	else
		LC_ALL=C tr -d '\200-\377'
	fi | LC_ALL=C tr -d '\000-\010\013\014\016-\037\177' | LC_ALL=C awk '
		BEGIN { printf "\"" }
		{
			gsub(/["\\]/, "\\\\&")
			gsub(/\t/, "\\t")
			gsub(/\r/, "\\r")
			printf "%s%s", (NR > 1 ? "\\n" : ""), $0
		}
		END { printf "\"" }'
}

# state_number NAME prints the number under a key of the graph state, 0 if there is none. In
# compact JSON a quote inside a string has a backslash in front, so only a key can match.
state_number() {
	local found
	found=$(state | LC_ALL=C tr -d '\n' | LC_ALL=C sed -n 's/.*[{,]"'"$1"'":\([0-9][0-9]*\).*/\1/p')
	printf '%s' "${found:-0}"
}

# state prints the state of the graph.
state() {
	if [ -n "${GRAPH_STATE_FILE:-}" ]; then
		cat "$GRAPH_STATE_FILE"
	else
		printf '%s' "${GRAPH_STATE:-}"
	fi
}

# call_tool TOOL NAME TEXT [-y] calls a tool of Loki with one argument, and prints what a model would
# read. Loki's own permissions decide whether the call may be made, as they are without any rule of
# the user: in an empty configuration, and where no user can be asked, what is not known to be
# harmless is refused, and this fails; with -y it is made.
call_tool() {
	local empty reply status=0 loki=${LOKI_EXECUTABLE:-loki}
	command -v "$loki" >/dev/null 2>&1 || fail "Nothing was run: the program loki, which this tool needs, is not on PATH."
	empty=$(mktemp -d "${TMPDIR:-/tmp}/loki-empty.XXXXXX") || fail "A temporary directory cannot be made."
	reply=$(
		unset AUTO_CONFIRM LOKI_CONFIG_FILE LOKI_ENV_FILE LOKI_FUNCTIONS_DIR
		LOKI_CONFIG_DIR=$empty LOKI_STATE_DIR=$empty LOKI_SHELL=/bin/sh \
			"$loki" ${4:+"$4"} --call-tool "$1" "{\"$2\": $(printf '%s' "$3" | json_string)}" </dev/null 2>"$empty/stderr"
	) || status=$?
	[ $status -eq 0 ] || [ -n "$reply" ] || reply=$(cat "$empty/stderr")
	rm -rf "$empty"
	case $status,$reply in
	0,*) printf '%s\n' "$reply" ;;
	*"it needs the user's consent"*) return 1 ;;
	*) printf '%s\n' "${reply:-The call failed.}" ;;
	esac
}

# run_limited BYTES COMMAND runs a shell command, prints the last BYTES bytes of what it prints,
# and returns its status.
run_limited() {
	local file status size
	file=$(mktemp "${TMPDIR:-/tmp}/loki-run.XXXXXX") || fail "A temporary file cannot be made."
	status=0
	bash -c "$2" >"$file" 2>&1 </dev/null || status=$?
	size=$(wc -c <"$file")
	if [ "$size" -gt "$1" ]; then
		printf '[%d bytes left out here]\n' $((size - $1))
	fi
	tail -c "$1" "$file"
	rm -f "$file"
	return $status
}

# run_check NAME LIMIT COMMAND runs a build or test command for a model, and prints the outcome.
# An empty command is a success.
run_check() {
	if [ -z "$3" ]; then
		printf 'This project has no known %s command (type %s), so there is nothing to run.\n' "$1" "$project_type"
		return
	fi
	printf '$ %s\n' "$3"
	local status=0
	run_limited "$2" "$3" || status=$?
	if [ $status -ne 0 ]; then
		printf '\nThe %s command failed with exit status %d.\n' "$1" $status
		return $status
	fi
	printf '\nThe %s command succeeded.\n' "$1"
}

# detect_project sets project_type, project_build, project_test, project_check and
# project_detected_by (cache, marker, model, none) for the current directory. A command that the
# project does not have is empty; the type of an unknown project is "unknown".
#
# A valid .loki-project.json comes first, then the files that mark a project, and then, if the
# variable ask_model is "yes", a model. What was found is kept in .loki-project.json if
# keep_project is "yes".
detect_project() {
	project_type='' project_build='' project_test='' project_check='' project_detected_by=none project_marker=''
	if read_project_file; then
		project_detected_by=cache
		return
	fi
	project_type='' project_build='' project_test='' project_check=''
	if detect_by_marker; then
		project_detected_by=marker
	elif [ "${ask_model:-no}" = yes ] && detect_by_model; then
		project_detected_by=model
	else
		project_type=unknown
		return
	fi
	if [ "${keep_project:-no}" = yes ]; then
		write_project_file
	fi
}

# project_json prints the result of detect_project.
project_json() {
	printf '{"type": %s, "build": %s, "test": %s, "check": %s' \
		"$(printf %s "$project_type" | json_string)" "$(printf %s "$project_build" | json_string)" \
		"$(printf %s "$project_test" | json_string)" "$(printf %s "$project_check" | json_string)"
	if [ -n "${1:-}" ]; then
		printf ', "_detected_by": %s, "_cached_at": "%s"' "$(printf %s "$1" | json_string)" "$(date -u +%Y-%m-%dT%H:%M:%SZ)"
	fi
	printf '}\n'
}

# write_project_file keeps the result; a directory that cannot be written is left as it is.
write_project_file() {
	local by=$project_detected_by
	[ -z "$project_marker" ] || by="marker $project_marker"
	{ project_json "$by" >".loki-project.json.$$" && mv -f ".loki-project.json.$$" .loki-project.json; } 2>/dev/null ||
		rm -f ".loki-project.json.$$"
}

# read_project_file reads .loki-project.json. It fails if the file is not one JSON object with texts
# for type, build, test and check, or if what it was made from is gone.
read_project_file() {
	local fields by
	[ -f .loki-project.json ] || return
	fields=$(json_fields type build test check _detected_by <.loki-project.json) || return
	{
		IFS= read -r project_type
		IFS= read -r project_build
		IFS= read -r project_test
		IFS= read -r project_check
		IFS= read -r by
	} <<FIELDS
$fields
FIELDS
	[ -n "$project_type" ] || return
	case $by in
	marker\ *) [ -e "${by#marker }" ] || return ;;
	model) [ "${ask_model:-no}" = yes ] || return ;; # a command of a model is not run unasked
	esac
}

# json_fields NAMES... reads a flat JSON object on standard input and prints the texts of these
# members, one on each line, empty for one that is missing. It fails if the input is anything else.
json_fields() {
	LC_ALL=C awk -v names="$*" '
		function bad() { failed = 1; exit 1 }
		function text(   out, c) { # the string that begins at rest
			if (substr(rest, 1, 1) != "\"") bad()
			rest = substr(rest, 2)
			out = ""
			while ((c = substr(rest, 1, 1)) != "\"") {
				if (rest == "" || c < " ") bad()
				if (c == "\\") {
					c = substr(rest, 2, 1)
					if (c !~ /["\\\/]/) bad()
					rest = substr(rest, 2)
				}
				out = out c
				rest = substr(rest, 2)
			}
			rest = substr(rest, 2)
			return out
		}
		function blanks() { sub(/^[ \t\r\n]+/, "", rest) }
		{ rest = rest $0 "\n" }
		END {
			if (failed) exit 1
			blanks()
			if (substr(rest, 1, 1) != "{") bad()
			do {
				rest = substr(rest, 2); blanks()
				name = text(); blanks()
				if (substr(rest, 1, 1) != ":") bad()
				rest = substr(rest, 2); blanks()
				member[name] = text(); blanks()
			} while (substr(rest, 1, 1) == ",")
			if (substr(rest, 1, 1) != "}") bad()
			rest = substr(rest, 2); blanks()
			if (rest != "") bad()
			for (i = 1; i <= split(names, wanted, " "); i++) print member[wanted[i]]
		}'
}

# has_file PATTERN... sets project_marker to the first file that matches.
has_file() {
	local file
	for file; do
		if [ -f "$file" ]; then
			project_marker=${file#./}
			return
		fi
	done
	return 1
}

# commands TYPE BUILD TEST CHECK sets the result.
commands() { project_type=$1 project_build=$2 project_test=$3 project_check=$4; }

# detect_by_marker looks for the files that mark a kind of project; the first one decides.
detect_by_marker() {
	local run='' tool
	if has_file Cargo.toml; then
		commands rust 'cargo build' 'cargo test' 'cargo check'
	elif has_file go.mod; then
		commands go 'go build ./...' 'go test ./...' 'go vet ./...'
	elif has_file deno.json deno.jsonc; then
		commands deno 'deno task build' 'deno test' 'deno lint'
		defines "$project_marker" tasks build || project_build=''
	elif has_file package.json; then
		tool=npm
		if [ -f yarn.lock ]; then
			tool=yarn
		elif [ -f pnpm-lock.yaml ]; then
			tool=pnpm
		elif [ -f bun.lockb ] || [ -f bun.lock ]; then
			tool=bun
		fi
		commands nodejs "$tool run build" "$tool test" "$tool run lint"
		defines package.json scripts build || project_build=''
		defines package.json scripts test || project_test=''
		defines package.json scripts lint || project_check=''
	elif has_file pyproject.toml setup.py setup.cfg; then
		if [ -f poetry.lock ]; then
			run='poetry run '
		elif [ -f uv.lock ]; then
			run='uv run '
		fi
		commands python '' "${run}pytest" "${run}ruff check ."
	elif has_file pom.xml; then
		commands java 'mvn compile' 'mvn test' 'mvn verify'
	elif has_file build.gradle build.gradle.kts; then
		tool=gradle
		[ ! -f gradlew ] || tool=./gradlew
		commands java "$tool build" "$tool test" "$tool check"
	elif has_file ./*.sln ./*.csproj; then
		commands dotnet 'dotnet build' 'dotnet test' 'dotnet build --warnaserrors'
	elif has_file CMakeLists.txt; then
		commands cmake 'cmake --build build' 'ctest --test-dir build' 'cmake --build build'
	elif has_file Gemfile; then
		commands ruby '' 'bundle exec rake test' 'bundle exec rubocop'
		if [ -f .rspec ] || [ -d spec ] || grep -q rspec Gemfile; then
			project_test='bundle exec rspec'
		fi
	elif has_file mix.exs; then
		commands elixir 'mix compile' 'mix test' 'mix credo'
	elif has_file composer.json; then
		commands php '' ./vendor/bin/phpunit './vendor/bin/phpstan analyse'
	elif has_file Package.swift; then
		commands swift 'swift build' 'swift test' 'swift build'
	elif has_file build.zig; then
		commands zig 'zig build' 'zig build test' 'zig build'
	elif has_file justfile; then
		commands just 'just build' 'just test' 'just lint'
		has_targets justfile
	elif has_file Makefile; then
		commands make 'make build' 'make test' 'make lint'
		has_targets Makefile
	else
		return 1
	fi
}

# defines FILE GROUP NAME reports whether a JSON file that has the object GROUP names NAME. A file
# without the group says nothing, which counts as yes.
defines() {
	grep -q "\"$2\"[[:space:]]*:" "$1" || return 0
	grep -q "\"$3\"[[:space:]]*:" "$1"
}

# has_targets FILE clears the commands whose targets a file that has targets does not have.
has_targets() {
	grep -Eq '^[A-Za-z_.-]+[^=]*:' "$1" || return 0
	grep -Eq '^build([[:space:]][^:=]*)?:' "$1" || project_build=''
	grep -Eq '^test([[:space:]][^:=]*)?:' "$1" || project_test=''
	grep -Eq '^lint([[:space:]][^:=]*)?:' "$1" || project_check=''
}

# detect_by_model asks the model that Loki is configured with. It fails without one, and takes
# plain commands only: words of letters, digits and . _ / = : @ + , -
detect_by_model() {
	local loki=${LOKI_EXECUTABLE:-loki} schema answer fields value
	command -v "$loki" >/dev/null 2>&1 || return
	schema=$(mktemp "${TMPDIR:-/tmp}/loki-project.XXXXXX") || return
	printf '%s' '{"type": "object", "required": ["type", "build", "test", "check"], "additionalProperties": false,
		"properties": {"type": {"type": "string"}, "build": {"type": "string"}, "test": {"type": "string"}, "check": {"type": "string"}}}' >"$schema"
	answer=$(describe_project | LOKI_FUNCTION_CALLING_SUPPORT=false LOKI_STREAM=false "$loki" -q --schema "$schema" \
		'How is this software project built, tested and checked from the command line, in its own directory? type: the language or tool in one lower-case word. build, test, check: one command each without shell operators, or an empty string if there is none.' \
		2>/dev/null)
	fields=$?
	rm -f "$schema"
	[ $fields -eq 0 ] || return
	fields=$(printf '%s' "$answer" | json_fields type build test check) || return
	{
		IFS= read -r project_type
		IFS= read -r project_build
		IFS= read -r project_test
		IFS= read -r project_check
	} <<FIELDS
$fields
FIELDS
	for value in "$project_type" "$project_build" "$project_test" "$project_check"; do
		case $value in
		*[!A-Za-z0-9\ ._/=:@+,-]*)
			project_type='' project_build='' project_test='' project_check=''
			return 1
			;;
		esac
	done
	[ -n "$project_type" ]
}

# describe_project prints what a model needs to know of the project.
describe_project() {
	local file
	echo "Files:"
	find_files -type f -print 2>/dev/null | LC_ALL=C sort | sed 's|^\./||' | head -n 100
	echo
	echo "Number of files by extension:"
	find_files -type f -name '*.*' -print 2>/dev/null | sed 's|.*\.||' | LC_ALL=C sort | uniq -c | sort -rn | head -n 15
	find_files -type f \( -name '*.toml' -o -name '*.json' -o -name '*.y*ml' -o -name '*.cfg' -o -name '*.ini' -o -name '*.gradle' -o -name '*file' \) -print 2>/dev/null |
		LC_ALL=C sort | head -n 5 | while IFS= read -r file; do
		printf '\nThe first lines of %s:\n' "${file#./}"
		head -n 30 "$file"
	done
}
