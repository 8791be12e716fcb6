package tree

import (
	"strings"

	"loki/internal/base/text/pattern"
)

// Glob is a pattern of package pattern. Without a slash it matches the last name of a path, and otherwise
// whole paths. It may be used from several goroutines.
type Glob struct {
	names   bool // matches the last name only
	pattern *pattern.Pattern
}

// Compile reads a pattern for paths relative to dir. Names at its start that exist in dir as they are written are
// literal; of the others both readings match. An error wraps [pattern.ErrMalformed].
func Compile(dir, text string) (*Glob, error) {
	p, err := pattern.CompileBoth(pattern.Literal(dir, strings.TrimPrefix(text, "/")))
	if err != nil {
		return nil, err
	}
	return &Glob{names: !strings.Contains(text, "/"), pattern: p}, nil
}

// Match reports whether the pattern matches a path with slashes, relative to where the
// pattern starts.
func (g *Glob) Match(path string) bool {
	if g.names {
		path = path[strings.LastIndexByte(path, '/')+1:]
	}
	return g.pattern.Match(path)
}
