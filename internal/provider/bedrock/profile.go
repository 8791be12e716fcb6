package bedrock

import "strings"

// configSection returns the name of a profile's section in the configuration file,
// where all but the default one bear a prefix.
func configSection(profile string) string {
	if profile == "default" {
		return profile
	}
	return "profile " + profile
}

// section returns the settings of one section of an AWS profile file. Keys are in
// lower case. A line that starts with # or ; is a comment, and so is what follows
// one of these after white space; an indented line belongs to a nested setting and
// is skipped. Of sections or keys that occur twice the last one counts.
func section(file, name string) map[string]string {
	settings := make(map[string]string)
	inside := false
	for line := range strings.Lines(strings.TrimPrefix(file, "\uFEFF")) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case strings.TrimSpace(line) == "", line[0] == '#', line[0] == ';', line[0] == ' ', line[0] == '\t':
			continue
		case line[0] == '[':
			title, _, ok := strings.Cut(line[1:], "]")
			inside = ok && strings.Join(strings.Fields(title), " ") == name
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if ok && inside {
			settings[strings.ToLower(strings.TrimSpace(key))] = strings.TrimSpace(withoutComment(value))
		}
	}
	return settings
}

func withoutComment(value string) string {
	for _, mark := range []string{" #", " ;", "\t#", "\t;"} {
		value, _, _ = strings.Cut(value, mark)
	}
	return value
}
