package cli

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"loki/internal/cache"
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
	settle  func()            // must be called before anything reads from the terminal
}

// newFace returns the face that the options ask for.
func (c *command) newFace(ctx context.Context) *face {
	f := &face{settle: func() {}, screen: c.newScreen()}
	narrator := c.newNarrator(f.screen)
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
		out = c.newAnswer(f)
	}
	var observer event.Emitter
	observed := func(context.Context) []string { return nil }
	if c.app != nil { // its configuration could be read
		observer, observed = c.app.Observe(ctx)
	}
	shown := event.Tee(narrator, out)
	if c.opts.output == outputText {
		shown = repliesFirst(narrator, out)
	}
	f.emitter = event.Tee(shown, observer)
	f.close = func(err error) error {
		f.settle()
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

// newScreen returns the screen on standard error.
func (c *command) newScreen() *render.Screen {
	return render.NewScreen(render.ScreenOptions{Out: c.Err, Terminal: c.escapes(), Color: c.color(), Size: c.size()})
}

// newNarrator returns what shows the progress of work on a screen.
func (c *command) newNarrator(screen *render.Screen) *render.Narrator {
	return render.NewNarrator(screen, render.NarratorOptions{
		Quiet: c.opts.quiet, Verbose: c.opts.verbose, HideQuestions: c.InTerminal, // there they are asked
	})
}

// repliesFirst emits to narrator and out, in this order, except for replies: the line of
// one has ended then when the narration says what it used. Both may go to one terminal or pipe.
func repliesFirst(narrator, out event.Emitter) event.Emitter {
	narratorFirst, outFirst := event.Tee(narrator, out), event.Tee(out, narrator)
	return event.Func(func(ctx context.Context, ev event.Event) error {
		if _, ok := ev.Body.(event.Reply); ok {
			return outFirst.Emit(ctx, ev)
		}
		return narratorFirst.Emit(ctx, ev)
	})
}

// newAnswer returns what prints the answer as text.
func (c *command) newAnswer(f *face) textAnswer {
	o := render.AnswerOptions{Out: c.Out, Terminal: c.OutTerminal, Quiet: c.opts.quiet}
	o.Replies = c.opts.verbose > 0
	o.Usage = (o.Replies || c.OutTerminal && c.escapes()) && c.app != nil && !c.app.DryRun()
	if o.Usage {
		o.Sources = c.sourceOptions()
	}
	if c.opts.execute && c.decides() {
		o.Out, o.Terminal = io.Discard, false // the command is shown with the question what to do with it
	} else {
		o.Markdown = c.markdown(f)
	}
	return textAnswer{
		Answer: render.NewAnswer(f.screen, o),
		screen: f.screen,
		quiet:  c.opts.quiet,
		whole:  c.opts.schema != "" || c.opts.execute || c.opts.resume != "" || c.opts.extracts(c.OutTerminal),
	}
}

// sourceOptions returns how the passages are listed that an answer was given from.
func (c *command) sourceOptions() *render.SourceOptions {
	o := &render.SourceOptions{Scores: c.opts.verbose > 0, Terminal: render.DetectCapabilities(c.getenv)}
	o.Dir, _ = os.Getwd() // without it paths are whole
	o.Host, _ = os.Hostname()
	return o
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
			if body.Error != "" {
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

// markdown returns how answers are laid out. It is nil if they are printed as they come:
// standard output is not a terminal that obeys escape sequences, or a prompt is printed.
func (c *command) markdown(f *face) *render.MarkdownOptions {
	out, ok := c.Out.(*os.File)
	if !ok || !c.OutTerminal || c.app == nil || c.app.DryRun() || !render.IsTerminal(out, c.getenv) {
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
	light := c.light(out, f)
	o.Theme = func() *theme.Theme {
		light := light()
		colors, err := theme.Open(c.app.Paths.ThemeFile(light), light)
		if err != nil {
			c.warn(err.Error())
		}
		return colors
	}
	return o
}

// backgroundTTL is how long the background of a terminal is taken for unchanged.
const backgroundTTL = time.Hour

// light returns what reports whether answers are shown on a light background: as the
// configuration says, or else the environment, what is remembered of the terminal, or the
// terminal itself. If it is asked, f settles it.
func (c *command) light(out *os.File, f *face) func() bool {
	always := func(light bool) func() bool { return func() bool { return light } }
	if name := c.app.Config.Theme; name != nil {
		return always(*name == "light")
	}
	if dark, known := render.DarkEnvironment(c.getenv); known {
		return always(!dark)
	}
	session := render.TerminalSession(out, c.getenv)
	if session == "" {
		return always(false)
	}
	memory := cache.Files{Dir: filepath.Join(c.app.Paths.CacheDir, "terminals")}
	key := fmt.Sprintf("%x", sha256.Sum256([]byte(session)))
	if background, ok := memory.Get(key); ok {
		return always(string(background) == "light")
	}
	asked := render.AskBackground()
	if asked == nil {
		return always(false)
	}
	settle := sync.OnceValue(func() bool {
		dark, known := asked.Settle()
		background := "dark"
		if known && !dark {
			background = "light"
		}
		memory.Put(key, []byte(background), backgroundTTL)
		if typed := asked.Lost(); typed != "" {
			c.warn(fmt.Sprintf("typed before the terminal was ready, and lost: %q", typed))
		}
		return background == "light"
	})
	f.settle = func() { settle() }
	return settle
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
