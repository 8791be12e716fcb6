package cli

import (
	"context"

	"loki/internal/display"
	"loki/internal/text"
)

// macroEntry is a macro in the list of --list-macros.
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
