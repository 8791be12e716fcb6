package cli

import (
	"context"
	"os"

	"loki/internal/chat"
	"loki/internal/engine"
	"loki/internal/event"
	"loki/internal/render"
)

// answer sends the text to the model and prints the reply.
func (c *command) answer(ctx context.Context, face *face) error {
	if len(c.opts.text) == 0 && len(c.opts.files) == 0 && c.InTerminal {
		return errNoInput()
	}
	prompt, err := c.prompt(c.In)
	if err != nil {
		return err
	}
	if prompt == "" {
		return errNoInput()
	}
	rc := c.app.Context(c.opts.model, c.opts.noStream)
	rc.Events = event.NewScope(face.emitter, event.Source{}, nil)
	_, err = c.app.Answer(ctx, &rc, engine.Request{Messages: []chat.Message{chat.Text(chat.User, prompt)}})
	return err
}

// face is how a command shows its work.
type face struct {
	screen  *render.Screen // standard error
	emitter event.Emitter
	close   func(error) error // ends the output; passes the error of the work on
}

// newFace returns the face that --output asks for.
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
		out = textAnswer{render.NewAnswer(f.screen, render.AnswerOptions{Out: c.Out, Terminal: c.OutTerminal, Quiet: c.opts.quiet})}
	}
	var observer event.Emitter
	observed := func(context.Context) []string { return nil }
	if c.app != nil { // its configuration could be read
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

// textAnswer gives an Answer the same Close as the machine outputs have.
type textAnswer struct{ *render.Answer }

// Close ends the answer.
func (t textAnswer) Close(error) error { return t.Answer.Close() }

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
