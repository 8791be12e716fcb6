package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"loki/internal/frontend/command/display"
	"loki/internal/frontend/render"
	"loki/internal/llm/event"
)

// face is how a command shows its work.
type face struct {
	display *display.Display
	screen  *render.Screen // of the display
	emitter event.Emitter
	planned *planOutput       // of --plan, else nil
	close   func(error) error // ends the output; passes the error of the work on
}

// newFace returns the face that the options ask for.
func (c *command) newFace(ctx context.Context) *face {
	f := &face{display: c.display()}
	f.screen = f.display.Screen()
	narrator := f.display.Narrator()
	var out interface {
		event.Emitter
		Close(error) error
	}
	switch {
	case c.opts.plan != "" && !c.opts.dryRun && (c.app == nil || !c.app.DryRun()):
		f.planned = &planOutput{planReport: planReport{Nodes: []plannedNode{}, Warnings: []string{}}, out: c.Out, machine: c.opts.output != outputText, hide: c.hide}
		out = f.planned
	case c.opts.output == outputNDJSON:
		out = render.NewNDJSON(c.Out, nil)
	case c.opts.output == outputJSON:
		out = render.NewReport(c.Out)
	default:
		out = c.newAnswer(f)
	}
	var observer event.Emitter
	observed := func(context.Context) []string { return nil }
	if c.app != nil { // its configuration could be read
		observer, observed = c.app.Observe(ctx)
	}
	shown := event.Tee(narrator, out)
	if c.opts.output == outputText {
		shown = display.RepliesFirst(narrator, out)
	}
	f.emitter = event.Tee(shown, observer)
	f.close = func(err error) error {
		f.display.Settle()
		closeErr := out.Close(c.hideIn(err))
		for _, w := range observed(context.WithoutCancel(ctx)) {
			f.screen.Warn(c.hide(w))
		}
		f.screen.Close()
		if err == nil {
			err = closeErr
		}
		return err
	}
	return f
}

// display returns what shows things as the options say.
func (c *command) display() *display.Display { return display.New(c.displayOptions()) }

// displayOptions returns how things are shown.
func (c *command) displayOptions() display.Options {
	return display.Options{
		Streams: c.Streams, App: c.app, Environ: c.environ, Quiet: c.opts.quiet, Verbose: c.opts.verbose, Watch: c.opts.watched, Warn: c.warn,
	}
}

// newAnswer returns what prints the answer as text.
func (c *command) newAnswer(f *face) textAnswer {
	o := f.display.Answer()
	if c.opts.execute && c.decides() {
		o.Out, o.Terminal = io.Discard, false // the command is shown with the question what to do with it
	} else {
		o.Markdown = f.display.Markdown()
	}
	return textAnswer{
		Answer: render.NewAnswer(f.screen, o),
		screen: f.screen,
		quiet:  c.opts.quiet,
		whole:  c.opts.schema != "" || c.opts.execute || c.opts.resume != "" || c.opts.extracts(c.OutTerminal),
	}
}

// textAnswer is an Answer with the same Close as the machine outputs have. A whole one
// is printed when all is done: before, it may not be what was asked for. If it is not, it is
// shown on standard error, so that the user sees why, and programs that read get nothing.
type textAnswer struct {
	*render.Answer
	screen *render.Screen
	whole  bool
	quiet  bool // what is not asked for is not shown
}

// Emit implements [event.Emitter].
func (t textAnswer) Emit(ctx context.Context, ev event.Event) error {
	if t.whole {
		switch body := ev.Body.(type) {
		case event.Delta, event.Reply:
			return nil
		case event.Finished:
			if body.Error != "" && body.Unhandled == 0 {
				if body.Output != "" && !t.quiet {
					fmt.Fprintf(t.screen, "what the model wrote:\n%s\n", strings.TrimRight(body.Output, "\n"))
				}
				body.Output = ""
				ev.Body = body
			}
		}
	}
	return t.Answer.Emit(ctx, ev)
}

// Close ends the answer.
func (t textAnswer) Close(error) error { return t.Answer.Close() }
