#!/usr/bin/env bash
# Prompts, guards, patches and colors for bash tools. Source it:
#
#   source "$LLM_PROMPT_UTILS_FILE"
#   name=$(input "Your name?")
#
# Prompts are drawn on the terminal and read their keys from it, whatever standard input,
# output and error are. The answer is what a prompt prints, so take it with $(...). Without a
# terminal a prompt says so on standard error and returns 1.
#
# Needs bash 3.2. Works under set -euo pipefail.

if [[ -n "${BASH_VERSION:-}" && "${OSTYPE:-}" == msys* ]] && (set -o igncr) 2>/dev/null; then
    set -o igncr
fi

# --- colors ---------------------------------------------------------------------------

# Colors as tput knows them for this terminal; empty if it has none.
_prompt_tput() {
    if command -v tput >/dev/null 2>&1; then
        command tput "$@" 2>/dev/null || true
    fi
}

red=$(_prompt_tput setaf 1)
green=$(_prompt_tput setaf 2)
gold=$(_prompt_tput setaf 3)
blue=$(_prompt_tput setaf 4)
magenta=$(_prompt_tput setaf 5)
cyan=$(_prompt_tput setaf 6)
white=$(_prompt_tput setaf 7)
gray=$(_prompt_tput setaf 8)
bold=$(_prompt_tput bold)
underlined=$(_prompt_tput smul)
default=$(_prompt_tput sgr0)

# CODE TEXT...: a line in that color. The words are joined by blanks, whatever IFS is.
_prompt_line() {
    local IFS=' ' code="$1"
    shift
    printf '%s\n' "$code$*$default"
}

red() { _prompt_line "$red" "$@"; }
green() { _prompt_line "$green" "$@"; }
gold() { _prompt_line "$gold" "$@"; }
yellow() { _prompt_line "$gold" "$@"; }
blue() { _prompt_line "$blue" "$@"; }
magenta() { _prompt_line "$magenta" "$@"; }
cyan() { _prompt_line "$cyan" "$@"; }
white() { _prompt_line "$white" "$@"; }

error() { _prompt_line "$red" "${bold}[ERROR]${default}$red" "$@"; }
warn() { _prompt_line "$gold" "${bold}[WARN]${default}$gold" "$@"; }
info() { _prompt_line "$cyan" "${bold}[INFO]${default}$cyan" "$@"; }
debug() { _prompt_line "$blue" "${bold}[DEBUG]${default}$blue" "$@"; }
trace() { _prompt_line "$gray" "${bold}[TRACE]${default}$gray" "$@"; }
success() { _prompt_line "$green" "${bold}[SUCCESS]${default}$green" "$@"; }

show_error() { _prompt_line "$red$bold" '✘' "$@" >&2; }
show_success() { _prompt_line "$green$bold" '✔' "$@" >&2; }

# --- the terminal ---------------------------------------------------------------------

# Whether there is a terminal to ask on.
_prompt_terminal() { (: <>/dev/tty) 2>/dev/null; }

_prompt_require() {
    if ! _prompt_terminal; then
        printf '%s\n' "$1: there is no terminal to ask on" >&2
        return 1
    fi
}

_prompt_draw() { printf '%s' "$1" >/dev/tty; }

# Reads one key into _prompt_key: up, down, left, right, enter, space, backspace, escape, end,
# or the character itself. Returns 1 if the terminal is gone.
_prompt_read_key() {
    local first='' second='' third=''
    _prompt_key=''
    IFS= read -rsn1 first </dev/tty || return 1
    case "$first" in
    '' | $'\r') _prompt_key=enter ;;
    ' ') _prompt_key=space ;;
    $'\177' | $'\b') _prompt_key=backspace ;;
    $'\004') _prompt_key=end ;;
    $'\033')
        # The rest of a key's sequence is there at once. bash 3.2 waits whole seconds only.
        _prompt_key=escape
        if IFS= read -rsn1 -t 1 second </dev/tty && [[ "$second" == '[' || "$second" == O ]]; then
            IFS= read -rsn1 -t 1 third </dev/tty || true
            case "$third" in
            A) _prompt_key=up ;;
            B) _prompt_key=down ;;
            C) _prompt_key=right ;;
            D) _prompt_key=left ;;
            *) _prompt_key=other ;;
            esac
        fi
        ;;
    *) _prompt_key="$first" ;;
    esac
}

# Runs a prompt with keys unechoed, so that those typed between two reads do not show, and
# puts the terminal back however the prompt ends.
_prompt_raw() {
    (
        _prompt_saved=$(command stty -g </dev/tty)
        trap _prompt_restore EXIT
        trap 'exit 130' INT TERM HUP
        command stty -echo -icanon min 1 time 0 </dev/tty
        "$@"
    )
}

_prompt_restore() {
    command stty "$_prompt_saved" </dev/tty
    _prompt_draw $'\033[?25h'
}

_prompt_question() { _prompt_draw "${bold}${cyan}?${default} ${bold}$1${default} "; }

# --- prompts --------------------------------------------------------------------------

# input TEXT: a line of text, printed without a line feed.
input() {
    local answer=''
    _prompt_require input || return 1
    _prompt_question "${1-}"
    IFS= read -r answer </dev/tty || [[ -n "$answer" ]] || return 1
    printf '%s' "$answer"
}

# confirm TEXT: one key; prints 1 for y or Y, otherwise 0.
confirm() {
    _prompt_require confirm || return 1
    _prompt_raw _prompt_confirm "${1-}"
}

_prompt_confirm() {
    _prompt_question "$1 (y/N)"
    _prompt_read_key || return 1
    case "$_prompt_key" in
    y | Y) _prompt_draw $'yes\n' && printf 1 ;;
    *) _prompt_draw $'no\n' && printf 0 ;;
    esac
}

# Draws the options of a list that the terminal has room for. Of its callers' variables it
# reads options, cursor, room and columns, and, where marks is set, chosen; it moves top, the
# first option that is shown.
_prompt_options() {
    local i mark text
    if [[ $cursor -lt $top ]]; then top=$cursor; fi
    if [[ $cursor -ge $((top + room)) ]]; then top=$((cursor - room + 1)); fi
    for ((i = top; i < top + room; i++)); do
        mark=''
        if [[ -n "$marks" ]]; then
            mark='◯ '
            if [[ "$chosen" == *" $i "* ]]; then mark="${green}◉${default} "; fi
        fi
        text="${options[i]//[[:cntrl:]]/ }"
        text="${text:0:$columns}"
        if [[ $i -eq $cursor ]]; then
            _prompt_draw $'\r\033[K'"${cyan}❯${default} $mark$cyan$text$default"$'\n'
        else
            _prompt_draw $'\r\033[K'"  $mark$text"$'\n'
        fi
    done
}

# Lets the user move over options; marks is empty, or 1 if they can be toggled. Leaves the
# result in cursor and chosen.
_prompt_select() {
    local drawn='' size top=0 room columns
    size=$(command stty size </dev/tty)
    room=$((${size% *} - 2))
    columns=$((${size#* } - 5))
    # A terminal that does not know its size says 0.
    if [[ $room -lt 1 ]]; then room=20; fi
    if [[ $columns -lt 1 ]]; then columns=75; fi
    if [[ $room -gt ${#options[@]} ]]; then room=${#options[@]}; fi
    _prompt_draw $'\033[?25l'
    while :; do
        if [[ -n "$drawn" ]]; then _prompt_draw $'\033['"${room}A"; fi
        _prompt_options
        drawn=1
        _prompt_read_key || return 1
        case "$_prompt_key" in
        up | k) cursor=$(((cursor + ${#options[@]} - 1) % ${#options[@]})) ;;
        down | j) cursor=$(((cursor + 1) % ${#options[@]})) ;;
        space) if [[ -n "$marks" ]]; then _prompt_toggle; fi ;;
        enter) return 0 ;;
        end) return 1 ;;
        esac
    done
}

# Adds the cursor to the chosen indexes or takes it out. Each stands between two blanks, so
# that 1 is not found in 11.
_prompt_toggle() {
    if [[ "$chosen" == *" $cursor "* ]]; then
        chosen="${chosen/" $cursor "/ }"
    else
        chosen="$chosen$cursor "
    fi
}

# list TEXT OPTION...: arrows or j and k, then Enter; prints the index, from 0.
list() {
    _prompt_require list || return 1
    if [[ $# -lt 2 ]]; then
        printf '%s\n' 'list: needs a text and at least one option' >&2
        return 1
    fi
    _prompt_raw _prompt_list "$@"
}

_prompt_list() {
    local cursor=0 chosen=' ' marks='' options
    _prompt_question "$1"
    _prompt_draw $'\n'
    shift
    options=("$@")
    _prompt_select || return 1
    printf '%s' "$cursor"
}

# checkbox TEXT OPTION...: like list, and space chooses; prints the chosen indexes in the order
# of choosing, separated by blanks.
checkbox() {
    _prompt_require checkbox || return 1
    if [[ $# -lt 2 ]]; then
        printf '%s\n' 'checkbox: needs a text and at least one option' >&2
        return 1
    fi
    _prompt_raw _prompt_checkbox "$@"
}

_prompt_checkbox() {
    local cursor=0 chosen=' ' marks=1 options
    _prompt_question "$1"
    _prompt_draw "${gray}(space to choose, enter to go on)${default}"$'\n'
    shift
    options=("$@")
    _prompt_select || return 1
    chosen="${chosen# }"
    printf '%s' "${chosen% }"
}

# password TEXT: shows a star for each character; prints the text without a line feed.
password() {
    _prompt_require password || return 1
    _prompt_raw _prompt_password "${1-}"
}

_prompt_password() {
    local answer='' length
    _prompt_question "$1"
    while :; do
        _prompt_read_key || return 1
        case "$_prompt_key" in
        enter) break ;;
        end) if [[ -z "$answer" ]]; then return 1; else break; fi ;;
        backspace)
            length=${#answer}
            if [[ $length -gt 0 ]]; then
                answer="${answer:0:$((length - 1))}"
                _prompt_draw $'\b \b'
            fi
            ;;
        up | down | left | right | escape | other | [[:cntrl:]]) ;;
        space)
            answer="$answer "
            _prompt_draw '*'
            ;;
        *)
            answer="$answer$_prompt_key"
            _prompt_draw '*'
            ;;
        esac
    done
    _prompt_draw $'\n'
    printf '%s' "$answer"
}

# editor TEXT: opens $EDITOR, or vi, on an empty file; prints what was written, and shows it on
# the terminal.
editor() {
    local file text line status=0
    _prompt_require editor || return 1
    file=$(command mktemp "${TMPDIR:-/tmp}/prompt.XXXXXX") || return 1
    _prompt_question "${1-}"
    _prompt_draw $'\n'
    # EDITOR may hold options, as in "code --wait", so the shell splits it.
    command sh -c "${EDITOR:-vi} \"\$1\"" editor "$file" </dev/tty >/dev/tty 2>&1 || status=$?
    text=$(<"$file")
    command rm -f "$file"
    if [[ $status -ne 0 ]]; then
        printf '%s\n' "editor: ${EDITOR:-vi} failed with status $status" >&2
        return 1
    fi
    while IFS= read -r line; do
        _prompt_draw "  ${gray}$line${default}"$'\n'
    done <<<"$text"
    printf '%s' "$text"
}

# range TEXT MIN START MAX: left and right, or h and l; prints the number.
range() {
    local number
    if [[ $# -ne 4 ]]; then
        printf '%s\n' 'range: needs a text, a smallest, a first and a largest number' >&2
        return 1
    fi
    for number in "$2" "$3" "$4"; do
        if [[ ! "$number" =~ ^-?[0-9]+$ ]]; then
            printf '%s\n' "range: $number is not a whole number" >&2
            return 1
        fi
    done
    if [[ $2 -gt $3 || $3 -gt $4 ]]; then
        printf '%s\n' "range: $3 is not between $2 and $4" >&2
        return 1
    fi
    _prompt_require range || return 1
    _prompt_raw _prompt_range "$@"
}

_prompt_range() {
    local text="$1" least="$2" number="$3" most="$4"
    _prompt_draw $'\033[?25l'
    while :; do
        _prompt_draw $'\r\033[K'
        _prompt_question "$text"
        _prompt_draw "${gray}$least ❮${default} ${bold}$number${default} ${gray}❯ $most${default}"
        _prompt_read_key || return 1
        case "$_prompt_key" in
        left | h) if [[ $number -gt $least ]]; then number=$((number - 1)); else number=$most; fi ;;
        right | l) if [[ $number -lt $most ]]; then number=$((number + 1)); else number=$least; fi ;;
        enter) break ;;
        end) return 1 ;;
        esac
    done
    _prompt_draw $'\n'
    printf '%s' "$number"
}

# --- validation -----------------------------------------------------------------------

# with_validate COMMAND CHECK: evaluates COMMAND and runs CHECK with the answer in a subshell,
# until it succeeds; what it prints is shown as the error. Prints the answer.
with_validate() {
    local answer message
    while :; do
        answer=$(eval "$1") || return 1
        if message=$("$2" "$answer" 2>&1); then
            printf '%s' "$answer"
            return 0
        fi
        if _prompt_terminal; then
            show_error "$message" 2>/dev/tty
        else
            show_error "$message"
            return 1 # the same answer would fail for ever
        fi
    done
}

with_validation() { with_validate "$@"; }

# validate_present VALUE: fails with a message if VALUE is empty.
validate_present() {
    if [[ -z "${1-}" ]]; then
        printf '%s\n' 'Please enter a value'
        return 1
    fi
}

# --- the system -----------------------------------------------------------------------

# detect_os: solaris, macos, linux, bsd, windows or unknown.
detect_os() {
    case "${OSTYPE:-}" in
    solaris*) printf 'solaris\n' ;;
    darwin*) printf 'macos\n' ;;
    linux*) printf 'linux\n' ;;
    *bsd*) printf 'bsd\n' ;;
    msys* | cygwin* | win*) printf 'windows\n' ;;
    *) printf 'unknown\n' ;;
    esac
}

# get_opener: the program that opens files and links here, or nothing.
get_opener() {
    case "$(detect_os)" in
    macos) printf 'open\n' ;;
    linux | bsd | solaris) printf 'xdg-open\n' ;;
    windows) printf 'start\n' ;;
    esac
}

# open_link URL: opens it, or prints it and returns 1.
open_link() {
    local opener
    opener=$(get_opener)
    case "$opener" in
    '') ;;
    start) if cmd //c start '' "${1//&/^&}" >/dev/null 2>&1; then return 0; fi ;;
    *) if command -v "$opener" >/dev/null 2>&1 && "$opener" "$1" >/dev/null 2>&1; then return 0; fi ;;
    esac
    printf '%s\n' "$1"
    return 1
}

# --- guards ---------------------------------------------------------------------------

# Guards ask people who run a tool by hand. Where standard output is no terminal, as when a
# program runs the tool, they let everything pass: that program has to ask.
_prompt_guarded() {
    [[ -t 1 && -z "${AUTO_CONFIRM:-}" && -z "${LLM_AGENT_VAR_AUTO_CONFIRM:-}" ]]
}

# guard_operation [TEXT]: asks, and ends the script with status 1 unless the answer is yes.
guard_operation() {
    local answer
    if ! _prompt_guarded; then return 0; fi
    answer=$(confirm "${1:-Are you sure you want to continue?}") || answer=0
    if [[ "$answer" != 1 ]]; then
        error 'aborted' >&2
        exit 1
    fi
}

# Prints a path as an absolute one without "." and "..", by its text alone.
_prompt_resolve() {
    local path="$1" part out=''
    case "$path" in
    /*) ;;
    *) path="$PWD/$path" ;;
    esac
    while [[ -n "$path" ]]; do
        part="${path%%/*}"
        if [[ "$path" == */* ]]; then path="${path#*/}"; else path=''; fi
        case "$part" in
        '' | .) ;;
        ..) out="${out%/*}" ;;
        *) out="$out/$part" ;;
        esac
    done
    printf '%s' "${out:-/}"
}

# guard_path PATH TEXT: the same for a PATH that is not in the current directory.
guard_path() {
    local path here
    if [[ $# -ne 2 ]]; then
        error 'guard_path needs a path and a question' >&2
        exit 1
    fi
    if ! _prompt_guarded; then return 0; fi
    path=$(_prompt_resolve "$1")
    here=$(_prompt_resolve "$PWD")
    if [[ "$path" == "$here" || "$path" == "${here%/}"/* ]]; then return 0; fi
    guard_operation "$2"
}

# --- patches --------------------------------------------------------------------------

# patch_file FILE PATCH: prints FILE with the hunks of a unified diff applied. Numbers in the
# diff do not count: a hunk goes to the first place behind the one before where its old lines
# stand.
patch_file() {
    if [[ $# -ne 2 ]]; then
        printf '%s\n' 'patch_file: needs a file and a patch' >&2
        return 1
    fi
    # Names are not awk's own arguments, as it would take a=b for an assignment.
    _prompt_file="$1" _prompt_patch="$2" command awk '
        BEGIN {
            patch = name(ENVIRON["_prompt_patch"])
            while ((status = (getline line < patch)) > 0) read(line)
            if (status < 0) fail("cannot read " patch)
            if (!hunks) fail("there is no hunk in the patch")
            file = name(ENVIRON["_prompt_file"])
            while ((status = (getline line < file)) > 0) lines[++count] = line
            if (status < 0) fail("cannot read " file)
            at = 1
            for (h = 1; h <= hunks; h++) {
                while (!matches(h)) {
                    if (at > count) fail("hunk " h " does not match the file")
                    out[++outs] = lines[at++]
                }
                for (i = 1; i <= news[h]; i++) out[++outs] = new[h, i]
                at += olds[h]
            }
            while (at <= count) out[++outs] = lines[at++]
            for (i = 1; i <= outs; i++) print out[i]
            exit 0
        }
        # Empty lines count only where the hunk goes on behind them.
        function read(line,   sign) {
            if (line ~ /^@@ /) { hunks++; inside = 1; empty = 0; return }
            if (line ~ /^(---|[+][+][+]) / || !inside) return
            sign = substr(line, 1, 1)
            if (sign == "") { empty++; return }
            if (sign != "-" && sign != "+" && sign != " ") { inside = 0; return }
            for (; empty > 0; empty--) { add(old, olds, ""); add(new, news, "") }
            if (sign != "+") add(old, olds, substr(line, 2))
            if (sign != "-") add(new, news, substr(line, 2))
        }
        function add(list, counts, text) { list[hunks, ++counts[hunks]] = text }
        function matches(h,   i) {
            if (at + olds[h] - 1 > count) return 0
            for (i = 1; i <= olds[h]; i++) if (lines[at + i - 1] "" != old[h, i] "") return 0
            return 1
        }
        function name(path) { return path ~ /^[\/]/ ? path : "./" path }
        function fail(text) {
            print "patch_file: " text | "cat >&2"
            close("cat >&2")
            exit 1
        }
    '
}
