package config

import "strings"

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
