package workspace

import (
	"strings"
	"unicode"
)

// imports returns the paths in a text that follow an at sign at the beginning of a line or behind a blank, outside of code: fenced
// blocks, and spans between backquotes. A path ends at a blank; punctuation at its end does not belong to it.
func imports(text string) (paths []string) {
	fence := ""
	for line := range strings.Lines(text) {
		trimmed := strings.TrimLeft(line, " \t")
		if mark := fenceOf(trimmed); mark != "" {
			switch {
			case fence == "":
				fence = mark
				continue
			case strings.HasPrefix(mark, fence) && strings.TrimSpace(strings.TrimLeft(trimmed, mark[:1])) == "":
				fence = ""
				continue
			}
		}
		if indented := len(line)-len(trimmed) >= 4 || strings.HasPrefix(line, "\t"); fence != "" || indented && !strings.ContainsAny(trimmed[:min(1, len(trimmed))], "-*+@") {
			continue
		}
		for _, field := range strings.Fields(withoutSpans(line)) {
			if path, ok := strings.CutPrefix(field, "@"); ok {
				if path = strings.TrimRightFunc(path, func(r rune) bool { return strings.ContainsRune(".,;:!?)]}'\"*_", r) }); path != "" {
					paths = append(paths, path)
				}
			}
		}
	}
	return paths
}

// fenceOf returns the backquotes or tildes that a line begins with, "" if it begins or ends no block of code.
func fenceOf(line string) string {
	for _, c := range []string{"`", "~"} {
		if n := len(line) - len(strings.TrimLeft(line, c)); n >= 3 {
			return line[:n]
		}
	}
	return ""
}

// withoutSpans returns a line without what is between backquotes.
func withoutSpans(line string) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(line, '`')
		if i < 0 {
			break
		}
		n := len(line[i:]) - len(strings.TrimLeft(line[i:], "`"))
		end := strings.Index(line[i+n:], line[i:i+n])
		if end < 0 {
			break
		}
		b.WriteString(line[:i] + "`")
		line = line[i+n+end+n:]
	}
	return strings.TrimRightFunc(b.String()+line, unicode.IsSpace)
}
