package command

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"

	"loki/internal/app"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/value/yamldoc"
	"loki/internal/conversation"
	"loki/internal/knowledge/input"
	"loki/internal/llm/event"
)

// ErrExit is what [Console.Do] returns for .exit: the user wants to leave.
var ErrExit = errors.New("exit")

// Output is where a console prints. Texts end without a line feed. Secrets are hidden in all but those
// of Reveal, and what a terminal would obey is shown instead, but for the colors of Colored.
type Output interface {
	Print(text string)    // the result of a command, on standard output
	Colored(text string)  // likewise, with colors
	Markdown(text string) // likewise, drawn as Markdown
	Reveal(text string)   // likewise, a secret that the user wants to see
	Note(text string)     // what happens besides, on standard error
	Warn(text string)     // likewise
}

// Options configure [New].
type Options struct {
	App          *app.App
	Conversation *conversation.Conversation
	Out          Output
	Asker        ask.Asker   // nil if the user cannot be asked
	Scope        event.Scope // of the events of commands; those of prompts go where the conversation sends them
	Interactive  bool        // a user types the submissions
	InMacro      bool

	Edit      func(ctx context.Context, file string) error // opens a file in the user's editor; nil refuses that
	Clipboard func(text string) error                      // nil refuses that
	Busy      func(label string) (done func())             // shows that something takes its time; nil shows nothing
	Shell     func() (t Terminal, release func())          // lends the terminal to a shell command; nil refuses that
	Columns   func() int                                   // how wide the terminal is, 0 if that is not known; nil means 0
	Queue     func(args string) (string, error)            // does what .queue is for; nil is an empty queue
	Follow    func(conversation.State)                     // is called with what is in force before and after each submission; nil for nothing
}

// Console executes the submissions of one user on one conversation. It belongs to one goroutine.
type Console struct {
	Options
	conv     *conversation.Conversation
	commands []Command
	macros   []string               // names of the macros at work, the outermost first
	known    map[string][]Candidate // of completion, until something is executed
	attached []input.Document       // go with the next prompt
	output   input.Document         // of the last shell command; zero for none
	hinted   bool                   // the user knows how to send it
}

// New returns a console.
func New(o Options) *Console {
	if o.Asker == nil {
		o.Asker = ask.Unavailable{}
	}
	if o.Busy == nil {
		o.Busy = func(string) func() { return func() {} }
	}
	return &Console{Options: o, conv: o.Conversation, commands: table()}
}

// Beside returns a console for commands that change nothing, which may run while c works: they see the conversation as it is now. What they
// print goes to out.
func (c *Console) Beside(out Output) *Console {
	o := c.Options
	o.Out, o.Asker, o.Follow = out, ask.Unavailable{}, nil
	return &Console{Options: o, conv: c.conv.Now(), commands: c.commands}
}

// Commands returns the table of commands, in the order of .help.
func (c *Console) Commands() []Command { return slices.Clone(c.commands) }

// Do executes a submission: a command, a command of the shell, or a prompt for the model. An empty one
// does nothing. A user who types exit, quit, help or ? and nothing else, also behind a slash, means the command. The error is [ErrExit] if the user wants to leave, and a [*ShellError] if a command of the shell
// fails, which was shown if the user typed it.
func (c *Console) Do(ctx context.Context, text string) error {
	ctx = event.NewContext(ctx, c.Scope)
	c.known = nil
	if c.Follow != nil {
		c.Follow(c.conv.State())
		defer func() { c.Follow(c.conv.State()) }()
	}
	if shell, ok := shellCommand(text); ok {
		return c.shell(ctx, shell)
	}
	s := parse(text)
	if c.Interactive && !c.InMacro {
		switch strings.TrimSpace(text) {
		case "exit", "quit", "/exit", "/quit":
			return ErrExit
		case "help", "?", "/help":
			s = submission{name: ".help"}
		case "/new", "/clear": // as other chats have it
			s = submission{name: ".new"}
		}
	}
	switch {
	case s.name != "":
		return c.command(ctx, s)
	case strings.TrimSpace(s.args) == "":
		return nil
	}
	return c.chat(ctx, s.args, nil)
}

// command executes a command.
func (c *Console) command(ctx context.Context, s submission) error {
	row, args, ok := c.find(s)
	if !ok {
		return c.usageError(s)
	}
	switch {
	case row.Args == "" && args != "":
		return fault.New(fault.Usage, "%s takes no argument, but %q was given", row.Name, args)
	case row.needsArgs() && args == "":
		return c.usage(row.usageWith(c, ctx))
	}
	return row.do(c, ctx, args)
}

// usage shows a user who typed a command without its arguments how it is written. In a macro, and without a user who
// types, it is an error with code Usage.
func (c *Console) usage(lines string) error {
	if c.InMacro || !c.Interactive {
		return fault.New(fault.Usage, "an argument is missing").WithHint("usage: %s", lines)
	}
	c.Out.Print("Usage: " + lines)
	return nil
}

// find returns the row of a command, which may be called by two words, and its arguments.
func (c *Console) find(s submission) (row Command, args string, ok bool) {
	second, rest := cutWord(s.args)
	for _, row := range c.commands {
		if second != "" && row.Name == s.name+" "+second {
			return row, rest, true
		}
	}
	i := slices.IndexFunc(c.commands, func(row Command) bool { return row.Name == s.name })
	if i < 0 || s.args != "" && c.commands[i].Args == "" && c.family(s.name) != nil {
		return Command{}, "", false
	}
	return c.commands[i], s.args, true
}

// family returns the commands of two words that begin with name.
func (c *Console) family(name string) (rows []Command) {
	for _, row := range c.commands {
		if strings.HasPrefix(row.Name, name+" ") {
			rows = append(rows, row)
		}
	}
	return rows
}

// lenient are the commands that print their usage if the second word is not known.
var lenient = []string{".empty", ".compress", ".save", ".edit"}

// usageError shows how a command is used whose second word is missing, or returns the error of one that
// does not exist.
func (c *Console) usageError(s submission) error {
	name, hint := s.name, "all commands: .help"
	if rows := c.family(s.name); len(rows) > 0 {
		if s.args == "" || slices.Contains(lenient, s.name) {
			var usage []string
			for _, row := range rows {
				usage = append(usage, row.Usage())
			}
			return c.usage(strings.Join(usage, "\n       "))
		}
		second, _ := cutWord(s.args)
		if name += " " + second; name == ".clear messages" {
			return fault.New(fault.Usage, "%s is not a command", name).WithHint("drop the messages of the session: .empty session")
		}
	}
	var names []string
	for _, row := range c.commands {
		names = append(names, row.Name)
	}
	near := yamldoc.Nearest(name, names)
	if i := slices.IndexFunc(names, func(n string) bool { return len(name) > 2 && strings.HasPrefix(n, name) }); i >= 0 {
		near = names[i]
	}
	if near != "" {
		hint = "did you mean " + near + "? " + strings.ToUpper(hint[:1]) + hint[1:]
	}
	return fault.New(fault.Usage, "%s is not a command", name).WithHint("%s", hint)
}

// Close leaves the conversation.
func (c *Console) Close(ctx context.Context) error { return c.conv.Close(ctx) }

// printUnless prints the result of a command unless there is an error, which it returns.
func (c *Console) printUnless(err error, result string) error {
	if err == nil {
		c.Out.Print(trimEnd(result))
	}
	return err
}

// words splits the arguments of a command by the rules of this system.
func words(args string) ([]string, string) { return Words(args, runtime.GOOS == "windows") }

// trimEnd returns a text without the line feeds at its end.
func trimEnd(s string) string { return strings.TrimRight(s, "\n") }
