package display

import (
	"io"
	"strings"

	"loki/internal/base/text"
	"loki/internal/frontend/render"
)

// Output prints what commands say. Secrets are hidden in all but what Reveal prints. A terminal obeys no text but the
// colors of what Colored prints.
type Output struct {
	Display *Display
	Layout  *render.MarkdownOptions // of texts in Markdown; nil prints them as they are
}

// Print prints a result, a text without a line feed at its end, on standard output.
func (o Output) Print(result string) { o.print(text.Printable(o.hide(result)) + "\n") }

// Colored is Print for a text with colors.
func (o Output) Colored(result string) { o.print(text.PrintableColored(o.hide(result)) + "\n") }

// Reveal is Print for a secret that the user wants to see.
func (o Output) Reveal(text string) { o.print(text + "\n") }

// Markdown is Print for a text in Markdown.
func (o Output) Markdown(source string) {
	source = strings.TrimRight(o.hide(source), "\n") + "\n"
	if o.Layout != nil {
		o.print(render.Markdown(source, *o.Layout))
		return
	}
	o.print(text.Printable(source))
}

// Note prints a text beside the results, on standard error.
func (o Output) Note(text string) {
	for line := range strings.Lines(o.hide(text)) {
		line = strings.TrimSuffix(line, "\n")
		if o.Display.Color() {
			line = "\x1b[2m" + line + "\x1b[m"
		}
		o.Display.screen.Print(line)
	}
}

// Warn prints a warning on standard error.
func (o Output) Warn(text string) { o.Display.screen.Warn(o.hide(text)) }

func (o Output) hide(text string) string {
	if o.Display.o.App == nil {
		return text
	}
	return o.Display.o.App.Hide(text)
}

// print writes to standard output, which may be the terminal of the screen. A reader that is gone is noticed by the next
// that writes there.
func (o Output) print(text string) {
	o.Display.screen.Pause()
	defer o.Display.screen.Resume()
	_, _ = io.WriteString(o.Display.o.Out, text)
}
