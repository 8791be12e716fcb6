package command

import (
	"context"
	"slices"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/base/value/yamldoc"
	"loki/internal/conversation/knowledge"
	"loki/internal/knowledge/rag"
)

func knowledgeCommands() []Command {
	return []Command{
		{Name: ".rag", Args: "[NAME]", Help: "Use or build a knowledge base; no NAME: temporary", Group: Knowledge, Offered: noAgent, do: (*Console).rag, complete: completeBase()},
		{Name: ".edit rag-docs", Help: "Edit the list of the documents", Group: Knowledge, Offered: baseOfUser, do: (*Console).editDocuments},
		{Name: ".rebuild rag", Help: "Read the documents again", Group: Knowledge, Offered: withBase, do: (*Console).rebuildBase},
		{Name: ".sources rag", Help: "Show what the last answer was given from", Group: Knowledge, Offered: withBase, do: (*Console).sources},
		{Name: ".info rag", Help: "Show the knowledge base", Group: Knowledge, Offered: withBase, do: (*Console).infoBase},
		{Name: ".exit rag", Help: "Answer without the knowledge base again", Group: Knowledge, Offered: baseOfUser, do: (*Console).exitBase},
	}
}

// rag is for .rag.
func (c *Console) rag(ctx context.Context, name string) error {
	if c.mode().Agent {
		return c.conv.UseKnowledge(name) // says why not
	}
	if name == "" {
		return c.tempBase(ctx)
	}
	names, err := c.App.Knowledge().Names(ctx)
	if err != nil {
		return err
	}
	if !slices.Contains(names, name) {
		if _, err := c.App.Knowledge().Library().File(name); err != nil {
			return err
		}
		if !c.Interactive {
			return c.App.Knowledge().Library().NotBuiltError(name)
		}
		if near := yamldoc.Nearest(name, names); near != "" {
			c.Out.Note("knowledge base " + name + " is new; did you mean " + near + "? Ctrl-C cancels.")
		}
		if err := c.newBase(ctx, name, "knowledge base "+name); err != nil {
			return err
		}
	}
	return c.conv.UseKnowledge(name)
}

// tempBase builds a temporary knowledge base, and answers from it.
func (c *Console) tempBase(ctx context.Context) error {
	if !c.Interactive {
		return fault.New(fault.Usage, "the name of the knowledge base is missing").WithHint(".rag NAME")
	}
	name, err := c.App.Knowledge().Temporary()
	if err != nil {
		return err
	}
	if err := c.newBase(ctx, name, "the temporary knowledge base"); err != nil {
		return err
	}
	return c.conv.UseKnowledge(name)
}

// newBase builds a knowledge base of what the user names.
func (c *Console) newBase(ctx context.Context, name, what string) error {
	answer, err := c.line(ctx, "Documents of "+what+" (files, directories, patterns, addresses; with ; between them)")
	if err != nil {
		return err
	}
	var documents []string
	for document := range strings.SplitSeq(answer, ";") {
		if document = strings.TrimSpace(document); document != "" {
			documents = append(documents, document)
		}
	}
	return c.changeBase(ctx, knowledge.Edit{Name: name, Add: documents, Asker: c.Asker})
}

// changeBase builds or changes a knowledge base.
func (c *Console) changeBase(ctx context.Context, change knowledge.Edit) error {
	if err := c.App.Knowledge().Change(ctx, c.Scope, change); err != nil {
		return err
	}
	stats, err := c.baseStats(ctx, change.Name)
	return c.printUnless(err, "✓ Knowledge base "+change.Name+": "+text.Count(stats.Files, "document")+", "+text.Count(stats.Chunks, "chunk"))
}

// baseStats returns what the knowledge base called name has.
func (c *Console) baseStats(ctx context.Context, name string) (stats rag.Stats, err error) {
	file, err := c.App.Knowledge().Library().File(name)
	if err != nil {
		return stats, err
	}
	return c.App.Knowledge().Stats(ctx, name, file)
}

// base returns the name of the knowledge base in force.
func (c *Console) base() (string, error) {
	if name := c.conv.State().Knowledge; name != "" {
		return name, nil
	}
	return "", fault.New(fault.Usage, "there is no knowledge base").WithHint("answer from one: .rag NAME")
}

// editDocuments is for .edit rag-docs.
func (c *Console) editDocuments(ctx context.Context, _ string) error {
	name, err := c.base()
	switch {
	case err != nil:
		return err
	case c.mode().Agent:
		return fault.New(fault.Usage, "the documents of an agent are in its definition").WithHint(".edit agent-config")
	}
	stats, err := c.baseStats(ctx, name)
	if err != nil {
		return err
	}
	old := stats.Settings.Documents
	edited, err := c.editText(ctx, strings.Join(old, "\n")+"\n", ".txt")
	if err != nil {
		return err
	}
	var documents []string
	for line := range strings.Lines(edited) {
		if line = strings.TrimSpace(line); line != "" && !slices.Contains(documents, line) {
			documents = append(documents, line)
		}
	}
	without := func(list, other []string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(other, s) })
	}
	change := knowledge.Edit{Name: name, Add: without(documents, old), Remove: without(old, documents), Asker: c.Asker}
	if len(documents) == 0 || len(change.Add)+len(change.Remove) == 0 {
		return errUnchanged()
	}
	return c.changeBase(ctx, change)
}

// rebuildBase is for .rebuild rag.
func (c *Console) rebuildBase(ctx context.Context, _ string) error {
	name, err := c.base()
	if err != nil {
		return err
	}
	if of, ok := c.conv.Agent(); ok {
		return knowledge.BuildError(c.App.Knowledge().Rebuild(ctx, of.Agent, c.Scope))
	}
	return c.changeBase(ctx, knowledge.Edit{Name: name, Rebuild: true, Asker: c.Asker})
}

// sources is for .sources rag.
func (c *Console) sources(context.Context, string) error {
	found := c.conv.LastFound()
	if len(found.Hits) == 0 {
		return fault.New(fault.Usage, "nothing was searched for an answer yet")
	}
	return c.printUnless(nil, text.Printable(strings.Join(found.Sources(), "\n")))
}

// infoBase is for .info rag.
func (c *Console) infoBase(ctx context.Context, _ string) error {
	name, err := c.base()
	if err != nil {
		return err
	}
	if of, ok := c.conv.Agent(); ok {
		list, err := c.App.Knowledge().OfAgent(ctx, of.Agent)
		for _, base := range list {
			c.Out.Print(text.Printable(base.Name + ": " + base.String()))
		}
		return err
	}
	info, err := c.App.Knowledge().Info(ctx, name)
	if err != nil {
		return err
	}
	var w yamldoc.Writer
	w.Members(0, info)
	return c.printUnless(nil, text.Printable(w.String()))
}

// exitBase is for .exit rag.
func (c *Console) exitBase(context.Context, string) error {
	return c.conv.ExitKnowledge()
}
