package command

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/text"
)

// tips are what .help tips prints.
const tips = `Tips
  :::                       begins and ends a text of several lines
  @FILE                     in a prompt sends the file along
  !COMMAND                  runs a shell command; !! TEXT sends its output
  Ctrl+O                    opens the text in your editor
  Ctrl+C                    stops an answer, and keeps its partial text
  Ctrl+D                    leaves the program`

// What .help takes besides groups, commands and words.
const (
	helpAll  = "all"
	helpTips = "tips"
)

// moreHelp is what .help ends with.
const moreHelp = ".help SECTION, such as .help roles, .help .COMMAND or .help WORD says more.\n.help all shows everything, .help tips keys and signs."

// help is for .help: the sections with their commands, or the requested ones with what they do.
func (c *Console) help(ctx context.Context, asked string) error {
	switch asked {
	case "":
		c.Out.Print(c.shortHelp() + "\n" + moreHelp)
		return nil
	case helpTips:
		c.Out.Print(tips)
		return nil
	case helpAll:
		c.Out.Print(helpOf(c.commands, true) + tips)
		return nil
	}
	rows := c.commandsFor(asked)
	if len(rows) == 0 {
		return fault.New(fault.NotFound, "no command has %q in its help", asked).WithHint("all commands: .help")
	}
	b := helpOf(rows, false)
	if len(rows) == 1 && rows[0].more != nil {
		b = strings.TrimRight(b, "\n") + "\n\n" + rows[0].more(c, ctx)
	}
	c.Out.Print(trimEnd(b))
	return nil
}

// commandsFor returns the commands of a group, the command with a name, or those with a text in their help.
func (c *Console) commandsFor(what string) (rows []Command) {
	lower := strings.ToLower(what)
	for _, is := range []func(Command) bool{
		func(r Command) bool {
			return len(lower) > 2 && strings.HasPrefix(strings.ToLower(string(r.Group)), lower)
		},
		func(r Command) bool { return r.Name == lower || strings.HasPrefix(r.Name, lower+" ") },
		func(r Command) bool { return strings.Contains(strings.ToLower(r.Usage()+" "+r.Help), lower) },
	} {
		for _, row := range c.commands {
			if is(row) {
				rows = append(rows, row)
			}
		}
		if rows != nil {
			return rows
		}
	}
	return nil
}

// helpOf returns rows under the headings of their groups. In short usages are cut.
func helpOf(rows []Command, short bool) string {
	var b strings.Builder
	for _, group := range groups() {
		heading := string(group) + "\n"
		for _, row := range rows {
			if row.Group != group {
				continue
			}
			usage := row.Usage()
			if short {
				usage = text.CutRunes(usage, 24)
			}
			fmt.Fprintf(&b, "%s  %-24s  %s\n", heading, usage, row.Help)
			heading = ""
		}
		if heading == "" {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// shortHelp returns the names of all commands, by groups.
func (c *Console) shortHelp() string {
	var b strings.Builder
	width := cmp.Or(c.width(), lineWidth)
	for _, group := range groups() {
		line := fmt.Sprintf("%-20s", group)
		for _, row := range c.commands {
			if row.Group != group {
				continue
			}
			if len(line)+2+len(row.Name) > width {
				b.WriteString(line + "\n")
				line = strings.Repeat(" ", 20)
			}
			line += "  " + row.Name
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// completeHelp completes a section or a command.
func completeHelp() completer {
	return first(func(c *Console, _ context.Context, words []string) (found []Candidate) {
		if strings.HasPrefix(words[0], ".") {
			for _, row := range c.commands {
				if name, _, two := strings.Cut(row.Name, " "); !two {
					found = append(found, Candidate{Value: name, Description: row.Help})
				}
			}
			return found
		}
		var sections []string
		for _, group := range groups() {
			name, _, _ := strings.Cut(strings.ToLower(string(group)), " ")
			sections = append(sections, name)
		}
		return candidatesOf(slices.Concat(sections, []string{helpAll, helpTips}))
	})
}
