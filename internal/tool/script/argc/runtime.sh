_argc_die() {
    builtin printf '%s\n' "$@" >&2
    builtin exit 1
}

_argc_join() {
    builtin local _argc_item
    _argc_joined="${1-}"
    builtin shift
    for _argc_item in "$@"; do
        _argc_joined="$_argc_joined, $_argc_item"
    done
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

# TEXT: the number after TEXT. Another parameter may have left any text in the variable of a
# counted flag, and arithmetic would evaluate it.
_argc_count() {
    if [[ "$1" == [1-9]* && "$1" != *[!0-9]* ]]; then
        _argc_used=$(($1 + 1))
    else
        _argc_used=1
    fi
}

# DELIMITER: the values, split at it.
_argc_split() {
    builtin local _argc_value _argc_fields
    _argc_fields=()
    for _argc_value in ${_argc_values[@]+"${_argc_values[@]}"}; do
        while [[ "$_argc_value" == *"$1"* ]]; do
            _argc_fields+=("${_argc_value%%"$1"*}")
            _argc_value="${_argc_value#*"$1"}"
        done
        if [[ -n "$_argc_value" ]]; then
            _argc_fields+=("$_argc_value")
        fi
    done
    _argc_values=(${_argc_fields[@]+"${_argc_fields[@]}"})
}

# WHAT CHOICE...: that each value is one of the choices.
_argc_check() {
    builtin local _argc_what="$1" _argc_value _argc_choice _argc_found _argc_joined
    builtin shift
    for _argc_value in ${_argc_values[@]+"${_argc_values[@]}"}; do
        _argc_found=
        for _argc_choice in "$@"; do
            if [[ "$_argc_value" == "$_argc_choice" ]]; then
                _argc_found=1
            fi
        done
        if [[ -z "$_argc_found" ]]; then
            _argc_join "$@"
            _argc_die "error: invalid value \`$_argc_value\` for $_argc_what" "  [possible values: $_argc_joined]"
        fi
    done
}

# WHAT FUNCTION: the same with the lines that FUNCTION prints.
_argc_check_by() {
    builtin local _argc_text _argc_choices _argc_feed=$'\n'
    if [[ ${#_argc_values[@]} -gt 0 ]]; then
        _argc_text="$("$2")" || builtin :
        _argc_choices=()
        while [[ "$_argc_text" == *"$_argc_feed"* ]]; do
            _argc_choices+=("${_argc_text%%$'\n'*}")
            _argc_text="${_argc_text#*"$_argc_feed"}"
        done
        _argc_choices+=("$_argc_text")
        _argc_check "$1" "${_argc_choices[@]}"
    fi
}

# MULTIPLE BEHIND: the positionals of one argument; BEHIND arguments are declared after it.
_argc_pick() {
    builtin local _argc_left=$((${#_argc_given[@]} - _argc_at)) _argc_count=1
    if [[ "$_argc_left" -le 0 ]]; then
        _argc_count=0
    elif [[ -n "$1" && "$_argc_left" -gt $((1 + $2)) ]]; then
        _argc_count=$((_argc_left - $2))
    fi
    _argc_slice "$_argc_count"
}

# COUNT: that many of the positionals.
_argc_slice() {
    _argc_values=()
    if [[ "$1" -gt 0 ]]; then
        _argc_values=("${_argc_given[@]:_argc_at:$1}")
    fi
    _argc_at=$((_argc_at + $1))
}

# FILE: the variables of it that are not set yet.
_argc_dotenv() {
    builtin local _argc_line _argc_name _argc_return=$'\r'
    builtin local _argc_assign='^[[:space:]]*(export[[:space:]]+)?([A-Za-z_][A-Za-z0-9_]*)[[:space:]]*=[[:space:]]*(.*)$'
    builtin local _argc_trail='^(.*[^[:space:]])[[:space:]]+$' _argc_double='^"(.*)"$' _argc_single="^'(.*)'\$"
    if [[ ! -f "$1" ]]; then
        builtin return 0
    fi
    while IFS= builtin read -r _argc_line || [[ -n "$_argc_line" ]]; do
        _argc_line="${_argc_line%"$_argc_return"}"
        if [[ "$_argc_line" =~ $_argc_assign ]]; then
            _argc_name="${BASH_REMATCH[2]}"
            _argc_line="${BASH_REMATCH[3]}"
            if [[ "$_argc_line" =~ $_argc_trail ]]; then
                _argc_line="${BASH_REMATCH[1]}"
            fi
            if [[ "$_argc_line" =~ $_argc_double || "$_argc_line" =~ $_argc_single ]]; then
                _argc_line="${BASH_REMATCH[1]}"
            fi
            if [[ -z "${!_argc_name+set}" ]]; then
                builtin export "$_argc_name=$_argc_line"
            fi
        fi
    done <"$1"
}
