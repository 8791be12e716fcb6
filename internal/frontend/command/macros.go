package command

import (
	"context"
	"errors"
	"slices"
	"strings"

	"loki/internal/agent/role/macro"
	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/frontend/command/display"
)

func macroCommands() []Command {
	return []Command{
		{
			Name: ".macro", Args: "NAME [ARGUMENT...]", Help: "Run a macro, or make a new one", Group: Macros, Offered: always,
			do: (*Console).macro, complete: completeMacro(), more: (*Console).listMacros,
		},
	}
}

// listMacros lists the macros, each as it is called.
func (c *Console) listMacros(context.Context) string {
	names, err := c.App.Macros().Names()
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, name := range names {
		usage := name
		if m, _, err := c.App.Macros().Load(name); err == nil { // else running it says what is wrong
			usage = m.Usage()
		}
		b.WriteString("  " + text.CutColumns(display.Line(usage), lineWidth-2) + "\n")
	}
	return b.String()
}

// maxMacros is how many macros may be at work that one another calls.
const maxMacros = 10

// macro runs a macro. A name without arguments that no macro has is that of one to be made.
func (c *Console) macro(ctx context.Context, args string) error {
	name, rest := cutWord(args)
	_, _, err := c.App.Macros().Load(name)
	if fault.CodeOf(err) == fault.NotFound && rest == "" && !c.InMacro && c.Interactive && c.Edit != nil && macro.Valid(name) {
		return c.makeMacro(ctx, name)
	}
	list, last := words(rest)
	if last != "" {
		list = append(list, last)
	}
	return c.RunMacro(ctx, name, list)
}

// makeMacro has the user write a macro, if they want to.
func (c *Console) makeMacro(ctx context.Context, name string) error {
	create, err := c.confirm(ctx, "There is no macro "+name+". Make it?", true)
	if err != nil || !create {
		return err
	}
	file := c.App.Paths.MacroFile(name)
	if err := c.openNew(ctx, file, ""); err != nil {
		return err
	}
	m, warnings, err := c.App.Macros().Load(name)
	c.warnOf(warnings)
	return c.printUnless(err, "✓ Made the macro "+name+": .macro "+m.Usage())
}

// RunMacro runs the macro called name in a conversation of its own, which begins with the settings in force in this one
// and leaves nothing behind. Each step is shown and executed like a submission. The first one that fails ends the macro with
// an error that names it.
func (c *Console) RunMacro(ctx context.Context, name string, args []string) (err error) {
	m, warnings, err := c.App.Macros().Load(name)
	c.warnOf(warnings)
	if err != nil {
		return err
	}
	steps, err := m.Fill(args)
	if err != nil {
		return err
	}
	if len(c.macros) == maxMacros {
		return fault.New(fault.Usage, "macro %s is not run: %d macros deep is too deep", name, maxMacros).
			WithHint("they call each other: %s", strings.Join(append(slices.Clone(c.macros), name), ", "))
	}
	o := c.Options
	o.Conversation, o.InMacro, o.Edit = c.conv.Isolate(), true, nil
	inner := New(o)
	inner.macros = append(slices.Clone(c.macros), name)
	defer func() { err = errors.Join(err, inner.Close(context.WithoutCancel(ctx))) }()
	if err := inner.conv.Prepare(ctx); err != nil {
		return err
	}
	for i, step := range steps {
		c.Out.Note(">> " + strings.ReplaceAll(strings.TrimRight(step.Text, "\n"), "\n", "\n.. "))
		if err := inner.Do(ctx, step.Text); err != nil && !errors.Is(err, ErrExit) { // the macro continues after .exit
			return fault.Wrap(fault.CodeOf(err), err, "macro %s, step %d of %d (%s)", name, i+1, len(steps), m.Place(step))
		}
	}
	return nil
}
