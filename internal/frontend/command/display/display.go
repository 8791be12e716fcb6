// Package display shows work on a terminal as the configuration says: progress on standard
// error, answers on standard output, questions in between. Its terms are those of package
// render: a screen, a narrator, an answer.
package display

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"loki/internal/app"
	"loki/internal/base/ask"
	"loki/internal/base/process/environ"
	"loki/internal/conversation"
	"loki/internal/frontend/render"
	"loki/internal/llm/event"
)

// Streams are where a face reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	// Terminals among them.
	InTerminal, OutTerminal, ErrTerminal bool
}

// Options configure New.
type Options struct {
	Streams
	App     *app.App // nil if its configuration could not be read
	Environ []string // of the process, as from os.Environ; what App knows counts more
	Quiet   bool     // progress is not shown; it wins over Verbose
	Verbose int      // as in render.NarratorOptions
	Watch   []string // likewise

	First string // what a REPL asks before the user enters anything, "" for nothing

	// Warn shows a warning about the display itself. Nil means on its screen.
	Warn func(text string)
	// Typed gets what the user typed while the terminal was asked for its colors, and what the system did not
	// take back. Nil means a warning.
	Typed func(text string)
}

// Display is what shows the work of a face. Its methods may be called from several goroutines.
type Display struct {
	o      Options
	screen *render.Screen
	light  func() bool // waits for what the terminal says of its background; nil if it is not asked
	plain  atomic.Bool // answers have no colors, see Follow
}

// New returns a display. It writes nothing yet.
func New(o Options) *Display {
	d := &Display{o: o}
	d.screen = render.NewScreen(render.ScreenOptions{Out: o.Err, Terminal: d.escapes(), Color: d.Color(), Size: d.Size()})
	d.plain.Store(o.App != nil && !o.App.Config.Highlight)
	if d.o.Warn == nil {
		d.o.Warn = d.screen.Warn
	}
	if d.o.Typed == nil {
		d.o.Typed = func(text string) {
			d.o.Warn(fmt.Sprintf("typed before the terminal was ready, and lost: %q", text))
		}
	}
	return d
}

// Follow shows and does from now on what the settings of a conversation say where those of the configuration held before. It
// is for a process with one conversation.
func (d *Display) Follow(st conversation.State) {
	d.plain.Store(!st.Highlight)
	d.o.App.SetDryRun(st.DryRun)
}

// Screen returns the screen on standard error. The caller closes it.
func (d *Display) Screen() *render.Screen { return d.screen }

// Narrator returns what shows the progress of work on the screen.
func (d *Display) Narrator() *render.Narrator {
	return render.NewNarrator(d.screen, render.NarratorOptions{
		Quiet: d.o.Quiet, Verbose: d.o.Verbose, Watch: d.o.Watch, HideQuestions: d.o.InTerminal, // there they are asked
	})
}

// Answer returns how an answer is printed as text. Markdown lays it out.
func (d *Display) Answer() render.AnswerOptions {
	o := render.AnswerOptions{Out: d.o.Out, Terminal: d.o.OutTerminal, Quiet: d.o.Quiet}
	o.Replies = d.o.Verbose > 0
	o.Usage = (o.Replies || d.o.OutTerminal && d.escapes()) && d.o.App != nil
	if o.Usage {
		o.Sources = d.sources()
	}
	return o
}

// sources returns how the passages are listed that an answer was given from.
func (d *Display) sources() *render.SourceOptions {
	o := &render.SourceOptions{Scores: d.o.Verbose > 0, Terminal: render.DetectCapabilities(d.Getenv)}
	o.Dir, _ = os.Getwd() // without it paths are whole
	o.Host, _ = os.Hostname()
	return o
}

// RepliesFirst emits to narrator and out, in this order, except for replies: the line of
// one has ended then when the narration says what it used. Both may go to one terminal or pipe.
func RepliesFirst(narrator, out event.Emitter) event.Emitter {
	narratorFirst, outFirst := event.Tee(narrator, out), event.Tee(out, narrator)
	return event.Func(func(ctx context.Context, ev event.Event) error {
		if _, ok := ev.Body.(event.Reply); ok {
			return outFirst.Emit(ctx, ev)
		}
		return narratorFirst.Emit(ctx, ev)
	})
}

// Settle waits until nothing but the caller reads from the terminal. Call it before anything does.
func (d *Display) Settle() {
	if d.light != nil {
		d.light()
	}
}

// Getenv looks a variable up, in the env file too.
func (d *Display) Getenv(name string) string {
	if d.o.App != nil {
		return d.o.App.Env.Get(name)
	}
	return environ.Get(d.o.Environ, name)
}

// OutColor reports whether standard output takes color.
func (d *Display) OutColor() bool { return render.ColorEnabled(d.Getenv, d.o.OutTerminal) }

// Color reports whether standard error takes color.
func (d *Display) Color() bool { return render.ColorEnabled(d.Getenv, d.o.ErrTerminal) }

// Size asks for the size of the terminal that standard error is. It is nil if that is none.
func (d *Display) Size() func() (columns, rows int) {
	if f, ok := d.o.Err.(*os.File); ok && d.o.ErrTerminal {
		return render.Size(f)
	}
	return nil
}

// escapes reports whether standard error is a terminal that obeys escape sequences.
func (d *Display) escapes() bool {
	f, ok := d.o.Err.(*os.File)
	return ok && d.o.ErrTerminal && render.IsTerminal(f, d.Getenv)
}

// Terminal returns what asks the user at the terminal while the display may be in use. A user
// who presses Ctrl-C at a question interrupts all work, also if a child asks. Before each question
// hold takes the keyboard from what reads it; nil means that nothing does. Keep is that of [ask.TerminalOptions].
func (d *Display) Terminal(interrupt func(), hold func() (release func()), keep func(typed []byte, late bool)) ask.Asker {
	return terminal{
		Terminal: ask.NewTerminal(ask.TerminalOptions{Getenv: d.Getenv, Keep: keep}), display: d,
		scripts: d.o.InTerminal && d.o.ErrTerminal, interrupt: interrupt, hold: hold,
	}
}

// terminal asks at the terminal. The screen pauses during a question.
type terminal struct {
	*ask.Terminal
	display   *Display
	scripts   bool // may talk to the user, too
	interrupt func()
	hold      func() (release func())
}

// Ask implements [ask.Asker].
func (t terminal) Ask(ctx context.Context, q ask.Question) (string, error) {
	defer t.Hold()()
	answer, err := t.Terminal.Ask(ctx, q)
	if errors.Is(err, context.Canceled) && ctx.Err() == nil {
		t.interrupt()
	}
	return answer, err
}

// Hold is for [ask.Hold].
func (t terminal) Hold() func() {
	t.display.Settle()
	release := func() {}
	if t.hold != nil {
		release = t.hold()
	}
	t.display.screen.Pause()
	return func() {
		t.display.screen.Resume()
		release()
	}
}

// AtTerminal is for [ask.AtTerminal].
func (t terminal) AtTerminal() bool { return t.scripts }
