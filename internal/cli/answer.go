package cli

import (
	"context"
	"io"
	"os"
	"time"

	"loki/internal/config"
	"loki/internal/event"
	"loki/internal/render"
	"loki/internal/render/markdown"
	"loki/internal/render/theme"
)

// face is how a command shows its work.
type face struct {
	screen  *render.Screen // standard error
	emitter event.Emitter
	close   func(error) error // ends the output; passes the error of the work on
}

// newFace returns the face that the options ask for.
func (c *command) newFace(ctx context.Context) *face {
	f := &face{screen: render.NewScreen(render.ScreenOptions{
		Out: c.Err, Terminal: c.escapes(), Color: c.color(), Size: c.size(),
	})}
	narrator := render.NewNarrator(f.screen, render.NarratorOptions{
		Quiet: c.opts.quiet, Verbose: c.opts.verbose, HideQuestions: c.InTerminal, // there they are asked
	})
	var out interface {
		event.Emitter
		Close(error) error
	}
	switch c.opts.output {
	case outputNDJSON:
		out = render.NewNDJSON(c.Out, nil)
	case outputJSON:
		out = render.NewReport(c.Out)
	default:
		out = c.newAnswer(f.screen)
	}
	var observer event.Emitter
	observed := func(context.Context) []string { return nil }
	if c.app != nil { // its configuration could be read
		c.app.Terminal = c.InTerminal && c.ErrTerminal
		c.app.OnToolOutput = func(_, line string) { f.screen.Print(line) }
		observer, observed = c.app.Observe(ctx)
	}
	f.emitter = event.Tee(narrator, out, observer)
	f.close = func(err error) error {
		closeErr := out.Close(err)
		for _, w := range observed(context.WithoutCancel(ctx)) {
			f.screen.Warn(w)
		}
		f.screen.Close()
		if err == nil {
			err = closeErr
		}
		return err
	}
	return f
}

// newAnswer returns what prints the answer as text.
func (c *command) newAnswer(screen *render.Screen) textAnswer {
	o := render.AnswerOptions{Out: c.Out, Terminal: c.OutTerminal, Quiet: c.opts.quiet, Markdown: c.markdown()}
	if c.opts.execute && c.decides() {
		o.Out, o.Terminal, o.Markdown = io.Discard, false, nil // the command is shown with the question what to do with it
	}
	return textAnswer{
		Answer: render.NewAnswer(screen, o),
		whole:  c.opts.schema != "" || c.opts.execute || c.opts.extracts(c.OutTerminal),
	}
}

// textAnswer is an Answer with the same Close as the machine outputs have. A whole one
// is printed when all is done: before, it may not be what was asked for.
type textAnswer struct {
	*render.Answer
	whole bool
}

// Emit implements [event.Emitter].
func (t textAnswer) Emit(ctx context.Context, ev event.Event) error {
	if t.whole {
		switch body := ev.Body.(type) {
		case event.Delta, event.Reply:
			return nil
		case event.Finished:
			if body.Error != "" {
				body.Output = ""
				ev.Body = body
			}
		}
	}
	return t.Answer.Emit(ctx, ev)
}

// Close ends the answer.
func (t textAnswer) Close(error) error { return t.Answer.Close() }

// markdown says how answers are laid out, nil if they are printed as they come: standard
// output is no terminal that obeys escape sequences, or JSON is wanted.
func (c *command) markdown() *render.MarkdownOptions {
	out, ok := c.Out.(*os.File)
	if !ok || !c.OutTerminal || c.app == nil || !render.IsTerminal(out, c.getenv) {
		return nil
	}
	cfg := c.app.Config
	o := &render.MarkdownOptions{
		Size: render.Size(out), Terminal: render.DetectCapabilities(c.getenv), WrapCode: cfg.WrapCode,
	}
	if n, ok := cfg.Wrap.Columns(); ok {
		o.Wrap = n
	} else if cfg.Wrap == config.WrapAuto {
		o.Wrap = markdown.Auto
	}
	if !cfg.Highlight || !c.outColor() {
		return o
	}
	light := c.light(out)
	var err error
	if o.Theme, err = theme.Open(c.app.Paths.ThemeFile(light), light); err != nil {
		c.warn(err.Error())
	}
	return o
}

// themePatience bounds how long a terminal is waited for that is asked for the colour of
// its background.
const themePatience = 100 * time.Millisecond

// light reports whether answers are shown on a light background: as the configuration
// says, or else the environment or the terminal itself.
func (c *command) light(out *os.File) bool {
	if name := c.app.Config.Theme; name != nil {
		return *name == "light"
	}
	if dark, known := render.DarkEnvironment(c.getenv); known {
		return !dark
	}
	in, ok := c.In.(*os.File)
	if !ok || !c.InTerminal {
		return false
	}
	dark, known := render.DarkBackground(in, out, themePatience)
	return known && !dark
}

// escapes reports whether standard error is a terminal that obeys escape sequences.
func (c *command) escapes() bool {
	f, ok := c.Err.(*os.File)
	return ok && c.ErrTerminal && render.IsTerminal(f, c.getenv)
}

// size asks for the size of the terminal that standard error is.
func (c *command) size() func() (columns, rows int) {
	if f, ok := c.Err.(*os.File); ok && c.ErrTerminal {
		return render.Size(f)
	}
	return nil
}
