package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"loki/internal/agent/workspace"
	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/frontend/command/display"
)

// listInstructions lists the files that instruct models in the working directory and below.
func (c *command) listInstructions(ctx context.Context) error {
	table, list, err := display.Instructions(ctx, c.app)
	if err != nil {
		return err
	}
	return printList(c, list, display.NoInstructions, table)
}

// listIgnored lists the ignore files of the workspace.
func (c *command) listIgnored(context.Context) error {
	table, list := display.IgnoreFiles(c.app)
	return printList(c, list, display.NoIgnored, table)
}

// trustFiles shows the files of the workspace at a directory that instruct models and are not trusted, and records that the user trusts
// them. It reports whether there are any that instruct.
func (c *command) trustFiles(ctx context.Context, dir string) (found bool, err error) {
	in := c.app.Instructions().Read(dir)
	files, err := in.All(ctx)
	if err != nil {
		return false, err
	}
	finder := c.app.Skills("")
	finder.Dir, finder.Root = dir, in.Root
	for _, s := range finder.Find() {
		if files = append(files, s.Unknown()...); s.InWorkspace() {
			found = true
			for _, p := range s.Findings {
				c.warn(p.Text())
			}
		}
	}
	var unknown []workspace.File
	for _, f := range files {
		switch {
		case f.State == workspace.Unusable:
			c.warn(fmt.Sprintf("%s is not used: %s", f.Name, f.Fault))
		case f.Unknown():
			unknown = append(unknown, f)
		}
		found = found || f.Sum != ""
	}
	if len(unknown) == 0 {
		if found {
			err = c.say("the instructions in %s are trusted already", text.Visible(in.Root))
		}
		return found, err
	}
	for _, f := range unknown {
		shown := fmt.Sprintf("%s (%s):\n\n%s\n\n", text.Visible(f.Name), f.State, visibleLines(c.app.Trust.ChangedText(in.Root, f)))
		if f.Of != "" && f.Text() == "" {
			content, err := skillFile(f)
			if err != nil {
				return true, err
			}
			shown = fmt.Sprintf("%s (%s), of the skill %s:\n\n%s\n\n", text.Visible(f.Name), f.State, text.Visible(f.Of), content)
		}
		if _, err := io.WriteString(c.forUser(), c.hide(shown)); err != nil {
			return true, err
		}
	}
	if !c.opts.yes {
		if err := c.askFiles(ctx, in.Root, unknown); err != nil {
			return true, err
		}
	}
	if err := c.app.Trust.AddFiles(ctx, in.Root, unknown); err != nil {
		return true, err
	}
	return true, c.say("trusted: %s, %s", text.Visible(in.Root), text.Count(len(unknown), "file"))
}

// maxSkillFile is how many bytes of a file of a skill are shown, besides SKILL.md.
const maxSkillFile = 16 << 10

// skillFile returns the content of a file of a skill, for people. The error says that it is not the one that was found.
func skillFile(f workspace.File) (string, error) {
	data, err := os.ReadFile(f.Path)
	if err != nil {
		return "", err
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != f.Sum {
		return "", fault.New(fault.Failure, "%s has just changed, so nothing was trusted", f.Name).WithHint("run the command again")
	}
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return fmt.Sprintf("    [%d bytes that are not text]", len(data)), nil
	}
	shown := visibleLines(text.Cut(string(data), maxSkillFile))
	if len(data) > maxSkillFile {
		shown += fmt.Sprintf("\n    [cut: the file has %d bytes]", len(data))
	}
	return shown, nil
}

// askFiles returns an error unless the user consents at the terminal.
func (c *command) askFiles(ctx context.Context, root string, files []workspace.File) error {
	yes, err := c.app.Trust.AskFiles(ctx, c.anyTerminal(), root, files)
	return trustRefusal(yes, err, "the instructions in "+text.Visible(root)+" are", "them")
}

// visibleLines returns lines as they are shown to a user who is to decide about them.
func visibleLines(s string) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	for i, line := range lines {
		lines[i] = "    " + text.Visible(line)
	}
	return strings.Join(lines, "\n")
}
