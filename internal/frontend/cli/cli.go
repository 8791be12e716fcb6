// Package cli is the one-shot command: it translates a command line into requests to
// the engine and runs of graph agents, and prints what comes back. The answer goes to
// standard output, everything else to standard error.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"loki/internal/agent/team/job"
	"loki/internal/app"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/process/environ"
	"loki/internal/base/value/yamldoc"
	"loki/internal/conversation"
	"loki/internal/conversation/session"
	"loki/internal/frontend/command/display"
	"loki/internal/frontend/render"
	"loki/internal/llm/event"
	"loki/internal/workflow/run"
)

// Streams are where a command reads and writes.
type Streams = display.Streams

// Terminal returns the streams of the process.
func Terminal() Streams {
	return Streams{
		In: os.Stdin, Out: os.Stdout, Err: standardError(),
		InTerminal:  term.IsTerminal(int(os.Stdin.Fd())),
		OutTerminal: term.IsTerminal(int(os.Stdout.Fd())),
		ErrTerminal: term.IsTerminal(int(os.Stderr.Fd())),
	}
}

// REPL is the interactive face. It has begin begin the conversation that the options ask for, and
// talks with the user until they leave. The signals that end the work of a command are its business.
type REPL func(ctx context.Context, o display.Options, begin func(context.Context, conversation.Caller) (*conversation.Conversation, error)) error

// Server is the face of programs and browsers. It serves at address until a signal ends it; an empty
// address is that of the configuration. Signals are its business, too.
type Server func(ctx context.Context, o display.Options, address string) error

// ACP is the face of editors, which talk to it over standard input and output. It serves one until that closes the input or ctx ends.
type ACP func(ctx context.Context, o display.Options, with EditorSessions) error

// EditorSessions say what the sessions of an editor begin with.
type EditorSessions struct {
	Agent, Model, Role, Knowledge string // names; empty for none
	Yes                           bool   // sessions may consent to everything
}

// Faces are the other faces, which a command may start. One that is nil is not there.
type Faces struct {
	REPL   REPL
	Server Server
	ACP    ACP
	MCP    Server // with the name of an agent instead of an address; empty for all
}

// Main runs the command and returns its exit status. environ is the environment as
// from os.Environ. A command at a terminal that says nothing else starts the REPL.
func Main(args, environ []string, s Streams, faces Faces) int {
	if job.ServeKeeper(args) {
		return 0
	}
	ctx, stop := signalContext()
	defer stop()
	// A second signal ends the process at once, in case the first takes long.
	defer context.AfterFunc(ctx, stop)()
	ctx, interrupt := context.WithCancel(ctx)
	defer interrupt()

	c := &command{Streams: s, environ: environ, interrupt: interrupt, releaseSignals: stop, faces: faces}
	err := c.run(ctx, args)
	if status, ok := errors.AsType[commandStatus](err); ok {
		return int(status)
	}
	c.report(err)
	return fault.ExitCode(err)
}

// signalError is the cause of the end of a command that received a signal. It is a [context.Canceled].
type signalError struct{ received os.Signal }

// Error implements error.
func (e *signalError) Error() string { return fmt.Sprintf("%s signal received", e.received) }

// Unwrap implements errors.Unwrap.
func (e *signalError) Unwrap() error { return context.Canceled }

// signalContext returns a context that ends with the first signal that ends the work. The signal of a user who gives up, Ctrl-C, is its cause
// as it is. The others, of a system that shuts down or a terminal that is closed, are no reason to undo what a run did: the cause is a
// [run.StopError]. Once stop was called, the signals do what they do by default.
func signalContext() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	ends := make(chan os.Signal, 1)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) { // from the start of this process, as under nohup
			signal.Notify(ends, s)
		}
	}
	go func() { // ends with the context
		select {
		case s := <-ends:
			var cause error = &signalError{s}
			if s != os.Interrupt {
				cause = &run.StopError{Err: cause}
			}
			cancel(cause)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(ends)
		cancel(nil)
	}
}

// command is one run of the program.
type command struct {
	Streams
	environ        []string
	interrupt      func() // ends all work, as a signal does
	releaseSignals func() // leaves signals to another face
	faces          Faces
	opts           options
	app            *app.App
	tty            *ask.Terminal              // nil until it is used
	talked         *conversation.Conversation // the last with the user; nil if there was none
	before         *session.Recent            // what the next one continues; nil if the options say it
	stray          string                     // an option after the text, which is part of the text
}

func (c *command) run(ctx context.Context, args []string) error {
	cmd := newCommand(&c.opts, func(cmd *cobra.Command) error {
		c.stray = optionInText(cmd.Flags(), args, c.opts.text)
		return c.dispatch(cmd.Context())
	})
	cmd.SetIn(c.In)
	cmd.SetOut(c.Out)
	cmd.SetErr(c.Err)
	if ok, err := c.complete(ctx, cmd.Flags(), args); ok {
		return err
	}
	if option, ok := optionWords[strings.Join(args, " ")]; ok && c.InTerminal && c.ErrTerminal {
		if err := c.offerOption(ctx, args[0], option); err != nil {
			return err
		}
		args = strings.Fields(option)
	}
	expanded, err := expandArgs(cmd.Flags(), args)
	if err != nil {
		return err
	}
	cmd.SetArgs(expanded)
	return cmp.Or(cmd.ExecuteContext(ctx), c.opts.helpErr)
}

// optionWords are words that are commands of other programs, each with the option that does it.
var optionWords = map[string]string{
	"help": "--help", "version": "--version", "models": "--list models", "login": "--setup", "setup": "--setup", "update": "--update",
	"serve": "--serve", "agents": "--list agents", "sessions": "--list sessions", "runs": "--runs",
}

// offerOption asks whether an option is meant by a word that would be sent to a model otherwise.
func (c *command) offerOption(ctx context.Context, word, option string) error {
	prompt := fmt.Sprintf("The text %q would be sent to a model. Run loki %s instead? y/N: ", word, option)
	key, err := c.terminal().Key(ctx, prompt, "ny")
	if err == nil && key == 'y' {
		return nil
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	return fault.New(fault.Usage, "nothing was sent").WithHint("loki %s is the option; loki -- %s sends the text", option, word)
}

// dispatch does what the options ask for.
func (c *command) dispatch(ctx context.Context) (err error) {
	action := c.opts.action
	if action.needs == needNothing {
		return action.do(c, ctx)
	}
	if c.app, err = app.New(app.Options{Environ: c.environ, DryRun: c.opts.dryRun, NoIgnore: c.opts.sampling.unignored, Model: c.opts.model}); err != nil {
		if action.work == nil {
			return err
		}
		return c.newFace(ctx).close(err)
	}
	if action.looks || c.opts.dryRun {
		c.app.Look()
	}
	far, err := c.server()
	if err != nil {
		return err
	}
	if far == nil && c.opts.replay == "" { // whose models were configured when it was recorded
		if err := c.setUp(ctx); err != nil {
			return err
		}
	}
	defer func() {
		if closeErr := c.app.Close(); closeErr != nil {
			c.warn(closeErr.Error())
		}
		c.warnOf(c.app.Notices.Take())
	}()
	if cfg := c.app.Config; c.opts.verbose > 0 && cfg.FromKeys && len(cfg.Clients) > 1 {
		fmt.Fprintf(c.Err, "note: the environment has keys of several providers, and %s is used; choose another one with -m CLIENT:MODEL\n", cfg.Clients[0].Name)
	}
	c.app.NoteConfig()
	c.warnOf(c.app.Notices.Take())
	ctx = event.NewContext(ctx, c.app.Events(c.warner()))
	if far != nil {
		return c.doRemotely(ctx, far)
	}
	if c.talks() {
		if err := refuse(c.opts.flags, "agent", breakFlags, "the REPL does not suspend what it runs; give the text on the command line"); err != nil {
			return err
		}
		talk := func() error {
			o := c.displayOptions()
			o.First = strings.Join(c.opts.text, " ")
			return c.faces.REPL(context.WithoutCancel(ctx), o, c.begin)
		}
		if err := c.enterWorktree(ctx); err != nil {
			return err
		}
		return c.leaveWorktree(ctx, talk(), func() error {
			c.continueTalk()
			return talk()
		})
	}
	finish, tapeErr := c.tape(ctx)
	if action = c.opts.action; action.do != nil {
		if tapeErr != nil {
			return tapeErr
		}
		return action.do(c, ctx)
	}
	// Work that cannot begin is reported in machine output too, hence the face comes first.
	face := c.newFace(ctx)
	defer face.screen.Close()
	if err := cmp.Or(tapeErr, c.enterWorktree(ctx)); err != nil {
		return face.close(err)
	}
	return c.leaveWorktree(ctx, face.close(finish(c.offerLocal(ctx, action.work(c, ctx, face)))), func() error {
		face := c.newFace(ctx)
		defer face.screen.Close()
		return face.close(action.work(c, ctx, face))
	})
}

// warn shows the user a warning on standard error.
func (c *command) warn(text string) {
	fmt.Fprintln(c.Err, render.Warning(c.hide(text), c.color(), render.Columns(c.Err)))
}

// warnOf shows warnings.
func (c *command) warnOf(texts []string) {
	for _, text := range texts {
		c.warn(text)
	}
}

// warner returns an emitter that shows warnings about the program and drops all else: for
// work without a face.
func (c *command) warner() event.Emitter {
	return event.Func(func(_ context.Context, ev event.Event) error {
		if w, ok := ev.Body.(event.Warning); ok && w.Once {
			c.warn(w.Text)
		}
		return nil
	})
}

// noteText shows a note about words that will be sent as text but look like options or files. At a terminal the user decides whether
// an option is sent, before anything is; --yes sends it.
func (c *command) noteText(ctx context.Context) error {
	if c.stray != "" && c.InTerminal && c.ErrTerminal && !c.opts.yes {
		prompt := fmt.Sprintf("%s comes after the text, so it would be sent as a part of it. Send it? y/N: ", c.stray)
		if key, err := c.terminal().Key(ctx, prompt, "ny"); err != nil && !errors.Is(err, io.EOF) || key != 'y' {
			if errors.Is(err, context.Canceled) {
				return err
			}
			return fault.New(fault.Usage, "nothing was sent: %s comes after the text", c.stray).
				WithHint("options come first: loki %s ... TEXT (and loki -- TEXT if it is meant)", c.stray)
		}
		return nil
	}
	if c.opts.quiet {
		return nil
	}
	if c.stray != "" {
		fmt.Fprintf(c.Err, "note: %s comes after the text, so it is sent as a part of it; options come first: loki %s ... TEXT (and loki -- TEXT if it is meant)\n", c.stray, c.stray)
	}
	if len(c.opts.files) == 0 {
		return nil
	}
	if files := filesInText(c.opts.text); len(files) > 0 {
		fmt.Fprintf(c.Err, "note: %s is a file, but is sent as text: -f takes one value; write -f in front of each file, or quote the pattern: -f '*%s'\n",
			files[0], filepath.Ext(files[0]))
	}
	return nil
}

// warnProblems shows the warnings about a file.
func (c *command) warnProblems(problems []*yamldoc.Problem) {
	for _, p := range problems {
		c.warn(p.Text())
	}
}

// outColor reports whether standard output takes color.
func (c *command) outColor() bool {
	return render.ColorEnabled(c.getenv, c.OutTerminal)
}

// color reports whether standard error takes color.
func (c *command) color() bool {
	return render.ColorEnabled(c.getenv, c.ErrTerminal)
}

// getenv looks a variable up, in the env file too once it is read.
func (c *command) getenv(name string) string {
	if c.app != nil {
		return c.app.Env.Get(name)
	}
	return environ.Get(c.environ, name)
}

// report prints an error, the only place that does.
func (c *command) report(err error) {
	if err == nil || isFindings(err) {
		return
	}
	var text strings.Builder
	render.Error(&text, err, c.color(), render.Columns(c.Err))
	_, _ = io.WriteString(c.Err, c.hide(text.String()))
}

// hide returns a text for people without the secrets that have been used.
func (c *command) hide(text string) string {
	if c.app == nil {
		return text
	}
	return c.app.Hide(text)
}

// hidden is an error whose text is without secrets.
type hidden struct {
	error
	text string
}

// Error returns the text without secrets.
func (h hidden) Error() string { return h.text }

// Unwrap returns the error itself, for its code and hint.
func (h hidden) Unwrap() error { return h.error }

// hideIn returns err as programs may read it.
func (c *command) hideIn(err error) error {
	if err == nil {
		return nil
	}
	return hidden{err, c.hide(err.Error())}
}

// outWidth returns the columns of the terminal that standard output is, 0 if it is none.
func (c *command) outWidth() int {
	if !c.OutTerminal {
		return 0
	}
	return helpWidth(c.Out)
}

func helpWidth(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 20 {
			return width
		}
	}
	return 80
}
