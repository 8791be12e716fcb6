#!/usr/bin/env bash
# @describe Demonstrates the parameter types of a bash tool, and prints what it was given.
#
# The comment tags tell the model what the tool takes. "!" is for a parameter that is
# required, "+" for an array that is, and "*" for any other array.
#
# @sandbox read
# @option --string! A required string
# @option --string-enum![foo|bar] A required string with two possible values
# @option --string-optional An optional string
# @flag --boolean A switch
# @option --integer! <INT> A required integer
# @option --number! <NUM> A required number
# @option --array+ <VALUE> A required array of strings
# @option --array-optional* An optional array of strings
#
# @env LLM_OUTPUT=/dev/stdout Where the result goes

main() {
    {
        printf 'string: %s\n' "$argc_string"
        printf 'string_enum: %s\n' "$argc_string_enum"
        printf 'string_optional: %s\n' "${argc_string_optional:-}"
        printf 'boolean: %s\n' "${argc_boolean:-0}"
        printf 'integer: %s\n' "$argc_integer"
        printf 'number: %s\n' "$argc_number"
        printf 'array: %s\n' "${argc_array[*]}"
        printf 'array_optional: %s\n' "${argc_array_optional[*]:-}"
        for name in ${!LLM_*}; do
            printf '%s: %s\n' "$name" "${!name}"
        done
    } >>"$LLM_OUTPUT"
}

eval "$(loki --argc-eval "$0" "$@")"
