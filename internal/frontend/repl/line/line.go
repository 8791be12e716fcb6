// Package line is the line editor of the REPL.
//
// A text is what the user types: one or more lines, separated by line feeds. A submission is a text
// that the user has finished with Enter. The editor owns the terminal while [Editor.Read] runs, and
// watches its keyboard between [Editor.Watch] and [Watch.Stop]; at all other times the terminal is as
// it was found.
//
// Four parts know nothing of each other's work: a decoder makes keys of bytes, the model is a state
// machine that keys change, a layout makes rows of the model, and a screen draws the rows that differ
// from the terminal's. Only the editor knows a terminal.
package line

import (
	"context"
	"errors"
	"os"
)

// ErrInterrupt is returned by [Editor.Read] when the user dropped the line with Ctrl-C.
var ErrInterrupt = errors.New("interrupted")

// ErrClosed is returned by an [Editor] after [Editor.Close].
var ErrClosed = errors.New("the line editor is closed")

// Options configures [New]. Only In and Out are required.
type Options struct {
	In  *os.File // a terminal, read for keys
	Out *os.File // the same terminal, drawn on

	Vi      bool     // vi bindings; false means emacs
	History *History // earlier submissions; Read adds to it. Nil means one in memory

	// Complete returns what can replace the end of a text, which is cut at the cursor. Nil means
	// nothing. It is called by the goroutine of Read for each key while a menu is open.
	Complete func(text string) Completion

	// Highlight returns text with sequences that set colors and weights (CSI ... m). A result whose
	// characters differ from those of text is ignored. Nil means none.
	Highlight func(text string) string

	// Incomplete reports whether Enter inserts a line feed instead of submitting text. Nil means
	// that every text can be submitted.
	Incomplete func(text string) bool

	// Edit has the user change text in another program, which has the terminal meanwhile, and
	// returns the new text. Its error is shown below the text, which then stays. Nil means that
	// there is no such program.
	Edit func(ctx context.Context, text string) (string, error)

	// Cycle is called for Shift-Tab while no menu is open, and returns the prompt that is shown from then on. Nil means
	// nothing.
	Cycle func() Prompt

	// News has an element when Above has something to print above the prompt. Above has the terminal as it was found.
	// Nil means that nothing comes.
	News  <-chan struct{}
	Above func()

	// Focus is called when the terminal reports that it got or lost the focus. Nil does not ask it to.
	Focus func(has bool)
}

// Completion is what can be put in place of the end of a text.
type Completion struct {
	From       int // byte offset in the text from which a candidate replaces it
	Candidates []Candidate
}

// Candidate is one entry of a menu.
type Candidate struct {
	Value       string
	Description string // shown beside the value; may be empty
	Space       bool   // a space follows the value when the user chooses it
}

// Prompt is what stands before a text. Both may have colors (CSI ... m).
type Prompt struct {
	Left  string // may have several lines
	Right string // at the right edge of the first row, if it fits
}
