package command

import (
	"context"
	"slices"
	"strings"
)

// Group says what a command is about. Its text is the heading in .help.
type Group string

// The groups, in the order of .help.
const (
	Chat      Group = "Chat"
	Roles     Group = "Roles"
	Sessions  Group = "Sessions"
	Agents    Group = "Agents"
	Knowledge Group = "Knowledge bases"
	Macros    Group = "Macros"
	Tools     Group = "Tools and servers"
	Runs      Group = "Runs and search"
	General   Group = "Settings and program"
)

// groups returns all groups in their order.
func groups() []Group {
	return []Group{Chat, Roles, Sessions, Agents, Knowledge, Macros, Tools, Runs, General}
}

// Command is a row of the table of commands.
type Command struct {
	Name  string // with its dot, in one or two words
	Args  string // as help shows them: "" takes none, "[X]" may have them, others have to be given
	Help  string // one line
	Group Group
	// Offered reports whether completion offers the command. It can be typed all the same.
	Offered func(Mode) bool

	// do executes the command. args has no blanks around it.
	do func(c *Console, ctx context.Context, args string) error
	// more returns what a user is shown below the usage who gives no arguments; nil shows nothing.
	more func(c *Console, ctx context.Context) string
	// complete returns candidates for the last of the words behind the name; nil has none.
	complete func(c *Console, ctx context.Context, words []string) []Candidate
}

// Usage returns how the command is written.
func (r Command) Usage() string { return strings.TrimSpace(r.Name + " " + r.Args) }

// usageWith returns how the command is written, and more about it.
func (r Command) usageWith(c *Console, ctx context.Context) string {
	if r.more == nil || c.InMacro || !c.Interactive {
		return r.Usage()
	}
	return strings.TrimRight(r.Usage()+"\n"+r.more(c, ctx), "\n")
}

// needsArgs reports whether the command cannot do without arguments.
func (r Command) needsArgs() bool { return r.Args != "" && !strings.HasPrefix(r.Args, "[") }

// table returns the commands, by group.
func table() []Command {
	rows := slices.Concat(
		chatCommands(), roleCommands(), sessionCommands(), agentCommands(), knowledgeCommands(), macroCommands(), mcpCommands(), skillCommands(), jobCommands(), findCommands(),
		settingCommands(), memoryCommands(), infoCommands(), editCommands(), deleteCommands(), vaultCommands(), installCommands(), updateCommands(), doctorCommands(),
	)
	order := groups()
	slices.SortStableFunc(rows, func(a, b Command) int { return slices.Index(order, a.Group) - slices.Index(order, b.Group) })
	return rows
}
