package cli

import (
	"context"
	"io"

	"loki/internal/base/text"
	"loki/internal/conversation"
	commands "loki/internal/frontend/command"
	"loki/internal/frontend/command/display"
)

// runMacro runs the macro that is named, with the words of the text as its arguments. Where nothing is given but its name
// models may ask the user, as in the REPL.
func (c *command) runMacro(ctx context.Context, face *face) (err error) {
	asker, err := c.withAnswers(ctx, c.asker(face, false))
	if err != nil {
		return err
	}
	attended := len(c.opts.text) == 0 && c.InTerminal && c.ErrTerminal
	events := c.app.Events(face.emitter)
	conv := c.app.Conversations().Begin(conversation.Options{
		Settings: c.opts.settings(), MaxOutputTokens: c.opts.sampling.maxOutput, NoStream: c.opts.noStream, Interactive: attended,
		Caller: conversation.Caller{Events: events, Asker: asker, Yes: c.opts.yes},
	})
	var terminal io.Writer // that can copy
	if c.OutTerminal {
		terminal = c.Out
	}
	console := commands.New(commands.Options{
		App: c.app, Conversation: conv, Out: display.Output{Display: face.display, Layout: face.display.Markdown()}, Asker: asker, Scope: events,
		Interactive: attended, Clipboard: func(text string) error { return display.Copy(text, terminal) }, Busy: face.screen.Spin, Follow: face.display.Follow,
		Shell: func() (t commands.Terminal, release func()) {
			face.screen.Pause()
			return commands.Terminal{In: c.In, Out: c.Out, Environ: c.environ}, face.screen.Resume
		},
	})
	defer closeTalk(ctx, console.Close, &err)
	return console.RunMacro(ctx, c.opts.value, c.opts.text)
}

// macroEntry is a macro in the list of --list macros.
type macroEntry struct {
	Name  string `json:"name"`
	Usage string `json:"usage,omitempty"` // the name and the arguments
	File  string `json:"file,omitempty"`  // absent for one that is part of the program
	Error string `json:"error,omitempty"` // why it cannot be run
}

// listMacros lists the macros: their names for programs, with their arguments at a terminal.
func (c *command) listMacros(context.Context) error {
	library := c.app.Macros()
	names, err := library.Names()
	if err != nil {
		return err
	}
	if c.opts.output == outputText && !c.OutTerminal {
		return printLines(c.Out, names)
	}
	list := make([]macroEntry, len(names))
	lines := make([]string, len(names))
	for i, name := range names {
		m, _, err := library.Load(name)
		if err != nil {
			list[i] = macroEntry{Name: name, Error: err.Error()}
			lines[i] = name + "  cannot be run: " + err.Error()
			continue
		}
		list[i] = macroEntry{Name: name, Usage: m.Usage(), File: m.File}
		lines[i] = m.Usage()
	}
	if c.opts.output != outputText {
		return printJSON(c.Out, list)
	}
	for i, line := range lines {
		lines[i] = text.CutColumns(display.Line(line), helpWidth(c.Out))
	}
	return printLines(c.Out, lines)
}
