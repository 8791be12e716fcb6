package command

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"loki/internal/app"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/conversation/session"
	"loki/internal/frontend/command/display"
)

func deleteCommands() []Command {
	return []Command{
		{Name: ".delete", Args: "KIND [NAME]", Help: "Delete roles, sessions, bases, macros, whole agents", Group: General, Offered: always, do: (*Console).delete, complete: completeDelete, more: (*Console).deletable},
	}
}

// completeDelete completes a kind, and then the name of what is there of it.
func completeDelete(c *Console, ctx context.Context, words []string) []Candidate {
	if len(words) != 2 || !slices.Contains(app.Kinds(), words[0]) {
		return oneOf(app.Kinds()...)(c, ctx, words)
	}
	names, _ := c.App.StoredNames(ctx, app.Kind(words[0]), c.conv.Scope())
	found := candidatesOf(offeredNames(names))
	for i, name := range c.labels(ctx, app.Kind(words[0]), offeredNames(names)) {
		found[i].Description = strings.TrimSpace(strings.TrimPrefix(name, found[i].Value))
	}
	return found
}

// labels returns names as they are shown: with the first words of sessions without a name.
func (c *Console) labels(ctx context.Context, of app.Kind, names []string) []string {
	list := slices.Clone(names)
	for i, name := range list {
		if of == app.SessionKind {
			list[i] = display.SessionLabel(ctx, c.App, c.conv.Scope(), name)
		}
	}
	return list
}

// deletable lists the kinds, each with the names of what there is of it.
func (c *Console) deletable(ctx context.Context) string {
	var b strings.Builder
	for _, kind := range app.Kinds() {
		names, err := c.App.StoredNames(ctx, app.Kind(kind), c.conv.Scope())
		list := cmp.Or(strings.Join(c.labels(ctx, app.Kind(kind), offeredNames(names)), ", "), "none")
		if err != nil {
			list = err.Error()
		}
		fmt.Fprintf(&b, "  %-10s  %s\n", kind, text.CutColumns(display.Line(list), lineWidth-14))
	}
	return b.String()
}

// mostUnnamed is how many sessions without a name are offered.
const mostUnnamed = 20

// offeredNames returns the names to choose from: all but those of older sessions without a name, which are ids and come last, the latest first.
func offeredNames(names []string) []string {
	first := slices.IndexFunc(names, func(name string) bool { _, err := session.ParseID(name); return err == nil })
	if first < 0 {
		return names
	}
	return names[:min(len(names), first+mostUnnamed)]
}

// whichDeleted returns the question for what is deleted of a kind.
func whichDeleted(of app.Kind) string {
	switch of {
	case app.AgentKind:
		return "Which agents are deleted, each with its directory?"
	case app.BaseKind:
		return "Which knowledge bases are deleted?"
	}
	return "Which " + text.Plural(2, string(of)) + " are deleted?"
}

// delete is for .delete.
func (c *Console) delete(ctx context.Context, arg string) error {
	kind, named, _ := strings.Cut(arg, " ")
	if !slices.Contains(app.Kinds(), kind) {
		return fault.New(fault.Usage, "%q cannot be deleted", kind).WithHint("%s", ".delete "+strings.Join(app.Kinds(), ", .delete "))
	}
	of, scope := app.Kind(kind), c.conv.Scope()
	names, err := c.App.StoredNames(ctx, of, scope)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return fault.New(fault.NotFound, "there is no %s to delete", kind)
	}
	var chosen []string
	if named = unquote(strings.TrimSpace(named)); named != "" {
		if chosen = []string{named}; !slices.Contains(names, named) {
			return fault.New(fault.NotFound, "there is no %s called %q to delete", nounOf(of), named).WithHint(".delete %s lists them", kind)
		}
	} else {
		answer, err := c.Asker.Ask(ctx, ask.Question{Kind: ask.Multi, Text: whichDeleted(of), Options: c.labels(ctx, of, offeredNames(names))})
		if err != nil {
			return err
		}
		if chosen, err = ask.SplitAnswers(answer); err != nil {
			return err
		}
		for i, label := range chosen {
			if id, _, _ := strings.Cut(label, " "); slices.Contains(names, id) && !slices.Contains(names, label) {
				chosen[i] = id
			}
		}
	}
	if len(chosen) == 0 {
		return fault.New(fault.Usage, "no %s was chosen, so nothing is deleted", kind)
	}
	if err := c.checkUnused(of, chosen); err != nil {
		return err
	}
	question := "Delete " + strings.Join(c.labels(ctx, of, chosen), ", ") + "?"
	if of == app.AgentKind {
		if question, err = c.agentsQuestion(chosen); err != nil {
			return err
		}
	}
	sure, err := c.confirm(ctx, question, false)
	if err != nil || !sure {
		return err
	}
	for _, name := range chosen {
		if err := c.printUnless(c.App.Delete(ctx, of, scope, name), "✓ Deleted "+kind+" "+name); err != nil {
			return err
		}
	}
	return nil
}

// checkUnused returns the error of names that are to be deleted, if one of them is in force.
func (c *Console) checkUnused(of app.Kind, chosen []string) error {
	inUse, leave := "", ""
	st := c.conv.State()
	switch of {
	case app.SessionKind:
		if s := c.conv.Session(); s != nil {
			inUse, leave = s.Name(), ".exit session"
		}
	case app.RoleKind:
		inUse, leave = st.Role, ".exit role"
	case app.BaseKind:
		if !c.mode().Agent {
			inUse, leave = st.Knowledge, ".exit rag"
		}
	case app.AgentKind:
		if in, ok := c.conv.Agent(); ok && samePath(in.Dir, c.App.AgentDir(in.Name)) {
			inUse, leave = in.Name, ".exit agent"
		}
	}
	if inUse == "" || !slices.Contains(chosen, inUse) {
		return nil
	}
	return fault.New(fault.Usage, "%s is in use, so nothing is deleted", nounOf(of)+" "+inUse).WithHint("leave it first: %s", leave)
}

// nounOf returns what messages call a kind.
func nounOf(of app.Kind) string {
	switch of {
	case app.AgentKind:
		return "agent"
	case app.BaseKind:
		return "knowledge base"
	}
	return string(of)
}

// samePath reports whether two paths are of the same file.
func samePath(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// agentsQuestion returns the question whether agents are deleted, with all that goes.
func (c *Console) agentsQuestion(names []string) (string, error) {
	var b strings.Builder
	b.WriteString("Delete " + strings.Join(names, ", ") + "? All of this goes:")
	for _, name := range names {
		list, err := c.App.AgentContents(name)
		if err != nil {
			return "", fault.Wrap(fault.Failure, err, "reading the directory of agent %s", name)
		}
		b.WriteString("\n" + c.App.AgentDir(name) + ": " + strings.Join(list, ", "))
	}
	return b.String(), nil
}
