// Package logging writes the log file.
//
// A record has a level and belongs to a package, the one whose code made it or the one
// that its "package" attribute names. [Open] returns the logger: a level and a filter
// say which records are kept, a redactor hides secrets in them, and each becomes one
// line of a file that is created by the first line, as text or as JSON. [Emitter] turns the events of runs
// and answers into records.
package logging

import (
	"context"
	"io"
	"log/slog"
	"os"
	"time"
)

// Options configure Open.
type Options struct {
	// Path of the file. Its directory is created when needed; lines are appended.
	Path string
	// Level is the least level that is kept, see [ParseLevel].
	Level string
	// Filter narrows it down or widens it for packages, see [ParseFilter].
	Filter string
	// Hide returns a text without the secrets that are known by then, such as configured
	// keys. It may be called from several goroutines. Nil hides none.
	Hide func(text string) string
	// Fallback is written to when the file cannot be; nil means os.Stderr.
	Fallback io.Writer
	// Now stamps the lines; nil means time.Now.
	Now func() time.Time
	// JSON makes each line a JSON object.
	JSON bool
	// Context returns what is known of the work that ctx belongs to, such as the id of a request, for lines of JSON. An
	// attribute of the record with the same key takes its place. Nil knows nothing.
	Context func(ctx context.Context) []slog.Attr
	// Thread is in each line to distinguish processes that share the file. 0 means the
	// process id.
	Thread int
}

// Open returns a logger and its file, which the caller closes. The logger may be used from several
// goroutines, and several processes may share a file. Nothing is created before the
// first record that is kept. At level off none is.
//
// The error says that the filter cannot be read. The logger works all the same, as if
// there were none.
func Open(o Options) (*slog.Logger, *File, error) {
	if o.Fallback == nil {
		o.Fallback = os.Stderr
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Thread == 0 {
		o.Thread = os.Getpid()
	}
	out := &File{path: o.Path, fallback: o.Fallback}
	err := out.SetLevel(o.Level, o.Filter)
	return slog.New(&handler{
		redact: newRedactor(o.Hide), now: o.Now, thread: o.Thread, out: out, json: o.JSON, context: o.Context,
	}), out, err
}
