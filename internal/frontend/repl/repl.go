package repl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"loki/internal/app"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/conversation"
	"loki/internal/conversation/session"
	"loki/internal/frontend/command"
	"loki/internal/frontend/command/display"
	"loki/internal/frontend/render"
	"loki/internal/frontend/repl/line"
	"loki/internal/llm/event"
	"loki/internal/setup/config"
)

// Run talks with the user at the terminal until they leave. begin begins the conversation. Errors
// of what the user enters are shown and do not end it; the error is that of begin, or of leaving the
// session, or has code Canceled if a signal ended the talk.
func Run(ctx context.Context, o display.Options, begin func(context.Context, conversation.Caller) (*conversation.Conversation, error)) error {
	in, ok := o.In.(*os.File)
	out, ok2 := o.Out.(*os.File)
	if !ok || !ok2 {
		return fault.New(fault.Usage, "a REPL needs a terminal")
	}
	r := &repl{app: o.App, options: o, in: in, out: out}
	var typed strings.Builder
	o.Typed = func(text string) { typed.WriteString(text) }
	o.Warn = r.warn
	r.display = display.New(o)
	r.screen = r.display.Screen()
	defer r.screen.Close()
	shown := r.display.Answer()
	r.markdown = r.display.Markdown()
	shown.Markdown = r.markdown
	r.answer = render.NewAnswer(r.screen, shown)
	observer, observed := o.App.Observe(ctx)
	defer func() {
		r.warnOf(observed(context.WithoutCancel(ctx)))
	}()
	r.scope = o.App.Events(event.Tee(display.RepliesFirst(event.Tee(r.display.Narrator(), event.Func(r.heard)), r.answer), observer))
	ctx, end := context.WithCancelCause(event.NewContext(ctx, r.scope))
	defer end(nil)
	defer r.handleSignals(end)()
	return r.run(ctx, begin, &typed)
}

// Guard does the work of a process that the REPL starts to guard its terminal, if args, without the name
// of the program, say so. It reports whether they do: the program has nothing else to do then.
func Guard(args []string) bool { return line.ServeGuard(args) }

// repl is a talk with a user.
type repl struct {
	app     *app.App
	options display.Options
	in, out *os.File

	display  *display.Display
	screen   *render.Screen
	markdown *render.MarkdownOptions // nil if texts are printed as they are
	answer   *render.Answer
	scope    event.Scope

	conv    *conversation.Conversation
	console *command.Console
	editor  *line.Editor
	entered *session.Session // that was replayed last; nil for none

	replayed bool // replay has been called

	queue     queue
	notices   sync.WaitGroup // of commands
	history   *line.History
	highlight bool // what is typed is colored, as of the latest prompt

	mu     sync.Mutex  // guards what follows
	cancel func()      // ends what is being done; nil while nothing is
	watch  *line.Watch // nil while nothing watches the keyboard
	leave  bool        // the user wants to leave when what is being done has ended
	deaf   int         // how many programs have the terminal that Ctrl-C is meant for
	away   bool        // the terminal does not have the focus
	ended  bool        // a signal ends the REPL, so that no question is answered any more
}

// run begins the conversation, reads and executes submissions, and leaves.
func (r *repl) run(ctx context.Context, begin func(context.Context, conversation.Caller) (*conversation.Conversation, error), typed fmt.Stringer) (err error) {
	asker := r.asker()
	working, done := r.begin(ctx)
	r.conv, err = begin(working, conversation.Caller{Events: r.scope, Asker: asker})
	done()
	if err != nil {
		return err
	}
	r.console = command.New(command.Options{
		App: r.app, Conversation: r.conv, Out: printer{r}, Asker: asker, Scope: r.scope, Interactive: true,
		Edit: r.edit, Clipboard: r.copyText, Busy: r.screen.Spin, Shell: r.shell, Columns: r.columns, Queue: r.queue.Command, Follow: r.display.Follow,
	})
	r.display.Settle() // from here on the editor reads from the terminal
	if r.history, err = r.openHistory(ctx); err != nil {
		r.warn(err.Error())
	}
	if unguard, err := line.StartGuard(r.in); err == nil { // else it is restored in all cases but those of a crash
		defer unguard()
	}
	focus := r.focus
	if r.app.Config.Notify == config.NotifyOff {
		focus = nil
	}
	editor := line.New(line.Options{
		In: r.in, Out: r.out, Vi: r.vi(), History: r.history,
		Complete: r.completer(ctx), Highlight: r.highlighter(), Incomplete: command.Incomplete, Edit: r.editText, Focus: focus, Cycle: r.cycle,
		News: r.conv.Jobs().News(), Above: func() {
			r.screen.Resume()
			r.conv.TellJobs(ctx)
			r.screen.Pause()
		},
	})
	r.setEditor(editor)
	defer r.notices.Wait()
	defer func() { // also after a panic
		if closeErr := editor.Close(); closeErr != nil {
			r.warn(closeErr.Error())
		}
	}()
	r.banner()
	r.replay()
	if err := r.loop(ctx, typed.String()); err != nil {
		return err
	}
	for _, line := range append(r.conv.Unsaid(), r.queue.rest()...) {
		r.warn("not run: " + text.OneLine(line, 200))
	}
	again := r.again()
	leaving, done := r.begin(context.WithoutCancel(ctx))
	err = r.console.Close(leaving)
	done()
	if err == nil {
		r.print(again)
	}
	if cause := context.Cause(ctx); err == nil && cause != nil {
		return cause
	}
	return err
}

// loop reads and executes submissions until the user leaves or ctx ends.
func (r *repl) loop(ctx context.Context, initial string) error {
	if first := r.options.First; first != "" {
		r.print(r.prompt().Left + first + "\n")
		if r.submitAll(ctx, first) {
			return nil
		}
	}
	hold := r.screen.Pause // what is written meanwhile would break into the line
	for {
		r.conv.TellJobs(ctx)
		initial = cmp.Or(initial, r.queue.back(r.editor.Draft))
		hold()
		text, err := r.editor.Read(ctx, r.prompt(), initial)
		r.screen.Resume()
		initial = ""
		r.queue.noteTyping("", 0)
		switch {
		case ctx.Err() != nil || errors.Is(err, io.EOF) || errors.Is(err, line.ErrClosed):
			return nil
		case errors.Is(err, line.ErrInterrupt):
			fmt.Fprintln(r.out, r.dim("(Ctrl-D or .exit leaves)"))
			continue
		case err != nil:
			return err
		}
		if r.submitAll(ctx, text) {
			return nil
		}
	}
}

// submitAll does what the user entered, and what they enter meanwhile. It reports whether they leave.
func (r *repl) submitAll(ctx context.Context, text string) (leave bool) {
	for more := true; more; {
		leave, err := r.submit(ctx, text)
		if leave {
			return true
		}
		fmt.Fprintln(r.out)
		if rest := r.conv.Unsaid(); err != nil || len(rest) > 0 {
			if n := r.queue.hold(rest); n > 1 {
				fmt.Fprintln(r.out, r.dim(fmt.Sprintf("(%d lines were not run, and return one by one; .queue lists them)", n)))
			}
		}
		if text, more = r.queue.next(); more && ctx.Err() == nil {
			r.print(r.prompt().Left + text + "\n")
		}
	}
	return false
}

// submit does what the user entered, and shows the result. It reports whether the user leaves, and the error that was shown.
func (r *repl) submit(ctx context.Context, text string) (leave bool, err error) {
	begun := time.Now()
	working, done := r.begin(ctx)
	err = r.do(working, text)
	if closeErr := r.answer.Close(); err == nil {
		err = closeErr
	}
	leave = done()
	if errors.Is(err, command.ErrExit) {
		return true, nil
	}
	r.fail(err)
	r.warnOf(r.app.Notices.Take())
	if leave {
		return true, err
	}
	r.over(time.Since(begun), err)
	r.replay()
	return false, err
}

// do executes a submission.
func (r *repl) do(ctx context.Context, text string) error {
	defer r.watchKeys(ctx)()
	return r.console.Do(ctx, text)
}

// fail shows an error.
func (r *repl) fail(err error) {
	if _, shown := err.(*command.ShellError); shown || err == nil { // that of a macro's step is wrapped
		return
	}
	var text strings.Builder
	render.Error(&text, err, r.display.Color(), render.Columns(r.options.Err))
	_, _ = io.WriteString(r.options.Err, r.app.Hide(text.String())) // the user is all there is to report to
}

// warn shows a warning: at once, or when what has the terminal gives it back.
func (r *repl) warn(text string) { r.screen.Warn(r.app.Hide(text)) }

func (r *repl) warnOf(texts []string) {
	for _, text := range texts {
		r.warn(text)
	}
}

// dim returns text as it is shown besides what matters.
func (r *repl) dim(text string) string { return r.paint("2", text) }

// paint returns text for standard output with the parameters of an SGR sequence.
func (r *repl) paint(parameters, text string) string {
	if !r.display.OutColor() || text == "" {
		return text
	}
	return "\x1b[" + parameters + "m" + text + "\x1b[0m"
}

// asker asks the user while something is being done. After a signal no user answers.
func (r *repl) asker() ask.Asker {
	return asker{r.display.Terminal(r.interrupt, r.hold, r.keep), r}
}

type asker struct {
	ask.Asker
	repl *repl
}

// Ask implements [ask.Asker].
func (a asker) Ask(ctx context.Context, q ask.Question) (string, error) {
	if a.repl.isEnded() {
		return ask.Unavailable{}.Ask(ctx, q)
	}
	defer a.repl.waits()()
	return a.Asker.Ask(ctx, q)
}

// Hold is for [ask.Hold].
func (a asker) Hold() func() { return ask.Hold(a.Asker) }

// AtTerminal is for [ask.AtTerminal].
func (a asker) AtTerminal() bool { return ask.AtTerminal(a.Asker) }
