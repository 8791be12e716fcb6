package repl

import (
	"fmt"
	"io"
	"strings"

	"loki/internal/app"
	"loki/internal/base/text"
	"loki/internal/frontend/command/display"
	"loki/internal/frontend/render"
)

// printer is where the console prints.
type printer struct{ r *repl }

// Print implements [command.Output].
func (p printer) Print(result string) {
	p.r.print(display.Fit(text.Printable(p.r.app.Hide(result)), p.r.columns()) + "\n")
}

// Colored implements [command.Output].
func (p printer) Colored(result string) {
	p.r.print(text.PrintableColored(p.r.app.Hide(result)) + "\n")
}

// Markdown implements [command.Output].
func (p printer) Markdown(text string) { p.r.printMarkdown(p.r.app.Hide(text)) }

// Reveal implements [command.Output].
func (p printer) Reveal(text string) { p.r.print(text + "\n") }

// Note implements [command.Output].
func (p printer) Note(text string) {
	text = display.Fit(p.r.app.Hide(text), p.r.columns())
	for line := range strings.Lines(text) {
		p.r.screen.Print(p.r.dim(strings.TrimSuffix(line, "\n")))
	}
}

// Warn implements [command.Output].
func (p printer) Warn(text string) { p.r.screen.Warn(p.r.app.Hide(text)) }

// columns returns how wide the terminal is, 0 if that is not known.
func (r *repl) columns() int { return render.Columns(r.out) }

// print writes text to standard output, which may be the terminal of the screen.
func (r *repl) print(text string) {
	r.screen.Pause()
	defer r.screen.Resume()
	_, _ = io.WriteString(r.out, text) // a terminal that is gone ends the next Read
}

// printMarkdown prints text as answers are printed.
func (r *repl) printMarkdown(source string) {
	if r.markdown == nil {
		r.print(text.Printable(strings.TrimRight(source, "\n")) + "\n")
		return
	}
	r.print(render.Markdown(source, *r.markdown))
}

// banner welcomes the user, unless an agent or a knowledge base is in force.
func (r *repl) banner() {
	if st := r.conv.State(); st.Agent != "" || st.Knowledge != "" {
		return
	}
	remembers := "\nEach question starts a new conversation: repl_session is false."
	if r.app.Config.REPLSession {
		remembers = "\nThis conversation is remembered; .new starts a new one."
	}
	r.print(fmt.Sprintf("Welcome to loki %s\nType .help for the commands.%s\n", app.Version, remembers)) // servers may just have started, with a spinner
}

// again says how the conversation is continued later, if it is on disk without a name.
func (r *repl) again() string {
	st := r.conv.State()
	if st.Session == nil || !st.Session.Unnamed || st.Session.Empty || st.Session.Dirty {
		return ""
	}
	of := ""
	if st.Agent != "" {
		of = " -a " + st.Agent
	}
	return r.dim("loki"+of+" -C continues this conversation.") + "\n"
}

// copyText puts text on the clipboard.
func (r *repl) copyText(text string) error { return display.Copy(text, r.out) }
