package sandbox

import (
	"os"
	"slices"
	"strings"

	"loki/internal/base/text"
)

// credential matches lines of settings that have credentials: a key that says so, or an address with a password or a token.
var credential = text.Regexp(`(?i)^\s*"?[\w.-]*(token|password|passwd|secret|_auth|extraheader|api_?key)[\w.-]*"?\s*[=:]|://[^/\s@"']*:[^/\s@"']+@|/t/[\w-]+(/|$)`)

// blank finds the settings that have credentials. Reasons to leave one out, such as that it is a directory, are none: it cannot be read
// either.
func (l *limits) blank(s *Sandbox) {
	for _, p := range blankedPlaces {
		path := s.absolute(p.path)
		if path == "" || !exists(path) {
			continue // the walk to where it leads takes longer
		}
		if path = resolve(path); !slices.ContainsFunc(l.read, func(place string) bool { return contains(place, path) }) {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		var kept strings.Builder
		blank := false
		for line := range strings.Lines(string(text)) {
			switch {
			case !credential().MatchString(line):
				kept.WriteString(line)
				continue
			case strings.HasPrefix(strings.TrimSpace(line), "["): // what follows is of no other section
				kept.WriteString("[blanked]\n")
			}
			blank = true
		}
		if !blank {
			continue
		}
		if l.blanked == nil {
			l.blanked = make(map[string]string)
		}
		l.blanked[path] = kept.String()
	}
}
