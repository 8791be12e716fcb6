// Package builtin holds the tools that are part of the program. They are written in Go
// and need nothing to be installed.
package builtin

import (
	"os"
	"runtime"
	"strings"
	"time"

	"loki/internal/shell"
	"loki/internal/tool"
)

// Options configure Tools. The zero value of each field is its default.
type Options struct {
	// Environ is the complete environment of the programs that tools start, as
	// name=value; of entries with the same name the last counts. Nil means that of this
	// process.
	Environ []string
	// Dir is the directory in which commands run; empty means that of this process.
	Dir string
	// CommandTimeout bounds execute_command; 0 means [tool.DefaultTimeout].
	CommandTimeout time.Duration
}

// Tools returns the tools, in the order of their names.
func Tools(o Options) []tool.Tool {
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	return []tool.Tool{
		&executeCommand{shell: shell.Find(runtime.GOOS, lookup(o.Environ)), environ: o.Environ, dir: o.Dir, timeout: o.CommandTimeout},
	}
}

// lookup returns a function that finds variables in environ.
func lookup(environ []string) func(name string) string {
	return func(name string) string {
		for i := len(environ) - 1; i >= 0; i-- {
			key, v, ok := strings.Cut(environ[i], "=")
			if ok && (key == name || runtime.GOOS == "windows" && strings.EqualFold(key, name)) {
				return v
			}
		}
		return ""
	}
}
