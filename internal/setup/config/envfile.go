package config

import (
	"fmt"
	"strings"
)

// ParseEnvFile returns the variables of an env file in their order. Each line is
// NAME=VALUE; white space around the line, the name and the value is dropped.
// Everything after the first equals sign is the value as it stands: there are no
// quotes, no "export", no expansion and no comments behind a value. Blank lines,
// lines that begin with # and lines without a name or an equals sign are passed
// over, and so are those with a NUL byte, which no environment can hold.
func ParseEnvFile(src []byte) []Var {
	const byteOrderMark = "\uFEFF"
	var vars []Var
	for line := range strings.Lines(strings.TrimPrefix(string(src), byteOrderMark)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") || strings.ContainsRune(line, 0) {
			continue
		}
		name, value, found := strings.Cut(line, "=")
		name = strings.TrimSpace(name)
		if found && name != "" {
			vars = append(vars, Var{name, strings.TrimSpace(value)})
		}
	}
	return vars
}

// envFileProblems returns an error for the first line of an env file that other programs
// read differently, nil if there is none: one with "export", and one with a quoted value.
func envFileProblems(file string, src []byte) error {
	number := 0
	for line := range strings.Lines(string(src)) {
		number++
		name, value, found := strings.Cut(strings.TrimSpace(line), "=")
		if !found || strings.HasPrefix(name, "#") {
			continue
		}
		if rest, exports := strings.CutPrefix(name, "export "); exports {
			return fmt.Errorf("%s:%d: export has no meaning here, so the line sets nothing; write %s=", file, number, strings.TrimSpace(rest))
		}
		value = strings.TrimSpace(value)
		if n := len(value); n > 1 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
			return fmt.Errorf("%s:%d: the quotes are part of the value of %s; leave them out", file, number, strings.TrimSpace(name))
		}
	}
	return nil
}
