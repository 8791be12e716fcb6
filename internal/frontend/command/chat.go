package command

import (
	"context"
	"os"
	"slices"
	"strconv"
	"strings"

	"loki/internal/agent/role"
	"loki/internal/base/fault"
	"loki/internal/base/file/atomicfile"
	"loki/internal/base/text"
	"loki/internal/conversation"
	"loki/internal/knowledge/input"
)

func chatCommands() []Command {
	return []Command{
		{Name: ".file", Args: "SOURCE... [-- TEXT]", Help: "Send files, directories, pages, output of commands", Group: Chat, Offered: always, do: (*Console).file, complete: completeFile(), more: func(*Console, context.Context) string { return sourceHelp }},
		{Name: ".continue", Help: "Continue the last answer", Group: Chat, Offered: always, do: (*Console).goOn},
		{Name: ".regenerate", Help: "Answer the last question again", Group: Chat, Offered: always, do: (*Console).regenerate},
		{Name: ".retry", Help: "The same as .regenerate", Group: Chat, Offered: always, do: (*Console).regenerate},
		{Name: ".edit last", Help: "Edit the last question, and ask that instead", Group: Chat, Offered: always, do: (*Console).editLast},
		{Name: ".undo", Help: "Drop the last question and its answer", Group: Chat, Offered: inSession, do: (*Console).undo},
		{Name: ".copy", Args: "[N]", Help: "Copy the last answer, or its Nth block of code", Group: Chat, Offered: always, do: (*Console).copyAnswer},
		{Name: ".save last", Args: "FILE", Help: "Write the last answer to a file", Group: Chat, Offered: always, do: (*Console).saveLast, complete: completeFile()},
		{Name: ".save code", Args: "N FILE", Help: "Write the Nth code block of the last answer", Group: Chat, Offered: always, do: (*Console).saveCode},
	}
}

// chat sends a prompt to the model, with the files that are mentioned in it. A role answers it alone; nil
// leaves it to the conversation.
func (c *Console) chat(ctx context.Context, prompt string, r *role.Role) error {
	prompt, sources := mentions(prompt, c.exists)
	for _, path := range missingFiles(prompt, c.exists) {
		c.Out.Note("There is no file " + path + ", so @" + path + " is sent as text.")
	}
	return c.send(ctx, prompt, sources, r, "Attached: "+strings.Join(sources, ", "))
}

// send sends a question with what is attached to it, and with what was attached before. When that is loaded, note is shown, if
// there is one.
func (c *Console) send(ctx context.Context, text string, sources []string, r *role.Role, note string, skills ...string) error {
	return c.sendWith(ctx, c.App.Loader(), text, sources, r, note, skills...)
}

func (c *Console) sendWith(ctx context.Context, loader *input.Loader, text string, sources []string, r *role.Role, note string, skills ...string) error {
	loader.Reply = c.conv.LastReply()
	attached, err := c.load(ctx, loader, sources)
	if err != nil {
		return err
	}
	if len(sources) > 0 && note != "" {
		c.Out.Note(note)
	}
	if note := attached.Note(); note != "" {
		c.Out.Note(note)
	}
	attached.Documents = append(slices.Clone(c.attached), attached.Documents...)
	if attached, err = c.App.Knowledge().Narrow(ctx, c.Scope, c.conv.Settings().Model, attached, text); err != nil {
		return err
	}
	for i, source := range sources {
		sources[i] = loader.Absolute(source)
	}
	asked := conversation.NewAsked(attached, text, sources)
	if err := c.conv.LoadSkills(ctx, skills, &asked); err != nil {
		return err
	}
	if asked.Blank() {
		return fault.New(fault.Usage, "there is nothing to send")
	}
	c.attached = nil
	_, err = c.conv.Tell(ctx, conversation.Question{Asked: asked, Role: r})
	return err
}

// load loads what is attached.
func (c *Console) load(ctx context.Context, loader *input.Loader, sources []string) (input.Attachments, error) {
	if len(sources) == 0 {
		return input.Attachments{}, nil
	}
	if err := c.App.AskForFiles(ctx, loader, sources, c.Asker, c.conv.Consents()); err != nil {
		return input.Attachments{}, err
	}
	defer c.Busy("Loading files")()
	return loader.Load(ctx, sources)
}

// noIgnore is the first word of .file that attaches what ignore files hide, too.
const noIgnore = "--no-ignore"

// file is for .file.
func (c *Console) file(ctx context.Context, args string) error {
	sources, text := words(args)
	loader := c.App.Loader()
	if len(sources) > 0 && sources[0] == noIgnore {
		sources, loader = sources[1:], c.App.OpenLoader()
	}
	if len(sources) == 0 {
		return fault.New(fault.Usage, "there is nothing to attach").WithHint(".file SOURCE... [-- TEXT]")
	}
	for i, word := range sources[1:] {
		if _, err := os.Stat(word); text == "" && err != nil && !strings.ContainsAny(word, `/\\.:*?[{%`+"`") {
			return fault.New(fault.NotFound, "no file or directory at %s", word).
				WithHint("a text comes after --: .file %s -- %s", strings.Join(sources[:i+1], " "), strings.Join(sources[i+1:], " "))
		}
	}
	return c.sendWith(ctx, loader, text, sources, nil, "")
}

// goOn is for .continue.
func (c *Console) goOn(ctx context.Context, _ string) error {
	_, err := c.conv.Continue(ctx)
	return err
}

// regenerate is for .regenerate and .retry.
func (c *Console) regenerate(ctx context.Context, _ string) error {
	_, err := c.conv.Regenerate(ctx)
	return err
}

// undo is for .undo.
func (c *Console) undo(ctx context.Context, _ string) error {
	asked, err := c.conv.Undo(ctx)
	return c.printUnless(err, "✓ Taken back: "+text.OneLine(asked.Text, 60))
}

// editLast is for .edit last.
func (c *Console) editLast(ctx context.Context, _ string) error {
	last, ok := c.conv.Last()
	if !ok {
		return fault.New(fault.Usage, "there is no question to edit")
	}
	edited, err := c.editText(ctx, last.Text, ".md")
	if err != nil {
		return err
	}
	if strings.TrimSpace(edited) == "" || edited == last.Text {
		return errUnchanged()
	}
	_, err = c.conv.Rewrite(ctx, edited)
	return err
}

// answer returns the last answer, or the block of code in it that n counts from 1 to; 0 means all of it.
func (c *Console) answer(n int) (string, error) {
	reply := c.conv.LastReply()
	if reply == nil {
		return "", fault.New(fault.Usage, "there is no answer yet")
	}
	if n == 0 {
		return *reply, nil
	}
	blocks := conversation.CodeBlocks(*reply)
	if n < 0 || n > len(blocks) {
		return "", fault.New(fault.Usage, "the last answer has %s, so there is no block %d", text.Count(len(blocks), "block")+" of code", n)
	}
	return blocks[n-1], nil
}

// block returns the number of a block of code.
func block(arg string) (int, error) {
	n, err := strconv.Atoi(arg)
	if err != nil || n < 1 {
		return 0, fault.New(fault.Usage, "%q is not the number of a block of code: they count from 1", arg)
	}
	return n, nil
}

// copyAnswer is for .copy.
func (c *Console) copyAnswer(_ context.Context, arg string) error {
	n := 0
	if arg != "" {
		var err error
		if n, err = block(arg); err != nil {
			return err
		}
	}
	answer, err := c.answer(n)
	if err != nil {
		return err
	}
	if c.Clipboard == nil {
		return fault.New(fault.Usage, "there is no clipboard here")
	}
	if err := c.Clipboard(answer); err != nil {
		return err
	}
	c.Out.Note("Copied " + text.Count(strings.Count(answer, "\n")+1, "line"))
	return nil
}

// saveLast is for .save last.
func (c *Console) saveLast(ctx context.Context, arg string) error { return c.saveAnswer(ctx, 0, arg) }

// saveCode is for .save code.
func (c *Console) saveCode(ctx context.Context, args string) error {
	first, file := cutWord(args)
	n, err := block(first)
	if err == nil && file == "" {
		err = fault.New(fault.Usage, "the file is missing").WithHint(".save code %d FILE", n)
	}
	if err != nil {
		return err
	}
	return c.saveAnswer(ctx, n, file)
}

// saveAnswer writes the last answer, or a block of code in it, to a file. It asks before it replaces one.
func (c *Console) saveAnswer(ctx context.Context, n int, arg string) error {
	names, rest := words(arg)
	if len(names) != 1 || rest != "" {
		return fault.New(fault.Usage, "one file is needed, but %q names %s", arg, text.Count(len(names), "file")).WithHint("put a name with blanks in quotes")
	}
	answer, err := c.answer(n)
	if err != nil {
		return err
	}
	file := c.App.Loader().Absolute(names[0])
	if _, err := os.Stat(file); err == nil {
		if yes, err := c.confirm(ctx, file+" exists. Replace it?", false); err != nil || !yes {
			return err
		}
	}
	if err := atomicfile.Write(file, []byte(strings.TrimSuffix(answer, "\n")+"\n"), atomicfile.Options{}); err != nil {
		return fault.Wrap(fault.Failure, err, "saving the answer")
	}
	c.Out.Print("✓ Saved in " + file)
	return nil
}

// sourceHelp says what .file takes.
const sourceHelp = `A source is a file, a directory, a pattern, an address, a command in
backquotes, or %% for the last answer:
  .file notes.txt -- Summarize this
  .file 'src/**/*.go' README.md -- What does this program do?
  .file https://example.com/
  .file ` + "`git diff`" + ` -- Write a commit message
  .file %% -- Shorter, please
The first word --no-ignore sends what ignore files hide, too.`
