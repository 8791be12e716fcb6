package command

import (
	"context"
	"fmt"
	"strings"
)

func settingCommands() []Command {
	return []Command{
		{Name: ".help", Args: "[TEXT]", Help: "List the commands, or those whose help has TEXT in it", Group: General, Offered: always, do: (*Console).help},
		{Name: ".exit", Help: "Leave the program", Group: General, Offered: always, do: (*Console).exit},
	}
}

// exit is for .exit.
func (c *Console) exit(context.Context, string) error { return ErrExit }

// tips are what .help ends with.
const tips = `Tips
  :::                       begins and ends a text of several lines
  Ctrl+O                    opens the text in your editor
  Ctrl+C                    stops an answer, and keeps what came of it
  Ctrl+D                    leaves the program`

// help is for .help.
func (c *Console) help(_ context.Context, text string) error {
	var b strings.Builder
	for _, group := range groups() {
		heading := string(group) + "\n"
		for _, row := range c.commands {
			if row.Group == group && strings.Contains(strings.ToLower(row.Usage()+" "+row.Help), strings.ToLower(text)) {
				fmt.Fprintf(&b, "%s  %-24s  %s\n", heading, row.Usage(), row.Help)
				heading = ""
			}
		}
		if heading == "" {
			b.WriteByte('\n')
		}
	}
	c.Out.Print(b.String() + tips)
	return nil
}
