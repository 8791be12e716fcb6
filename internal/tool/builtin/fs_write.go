package builtin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"loki/internal/base/text"
	"loki/internal/tool"
	"loki/internal/tool/builtin/fsys"
	"loki/internal/tool/builtin/patch"
)

// Limits of changes and of the differences that a user sees.
const (
	maxEdited    = 16 << 20 // bytes of a file that fs_patch edits
	maxCompared  = 2 << 20  // bytes of a file whose difference is shown
	maxDiffLines = 200      // lines of a difference that are shown
)

type writeArgs struct {
	Path     string `json:"path"`
	Contents string `json:"contents"`
}

func (b *base) fsWrite() tool.Tool {
	params := []param{
		{name: "path", kind: "string", description: "Path of the file, absolute or relative to the working directory. Missing directories are created."},
		{name: "contents", kind: "string", description: "The full contents of the file.", blank: true},
	}
	return &guardedTool{
		native: native{
			name:        "fs_write",
			description: "Write a file. The contents replace those of an existing file. Use fs_patch instead to change a part of a file.",
			params:      params,
			hints:       tool.Hints{Destructive: true},
			run: function(params, func(ctx context.Context, args writeArgs, call tool.Call) (string, error) {
				c, err := b.rootOf(call).Write(ctx, args.Path, args.Contents)
				if err != nil {
					return "", err
				}
				done := "replaced the contents of"
				if c.Created {
					done = "created"
				}
				if c.Note != "" {
					c.Note = "; " + c.Note
				}
				return fmt.Sprintf("%s %s (%s, %d bytes%s)", done, args.Path, text.Count(lineCount(args.Contents), "line"), c.Written, c.Note), nil
			}),
		},
		consent: consent(params, func(args writeArgs) (string, error) {
			return b.writeQuestion(args.Path, args.Contents)
		}),
	}
}

func lineCount(text string) int {
	n := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		n++
	}
	return n
}

// writeQuestion returns the question about a file that is replaced, or created outside of
// the root. A call that will change nothing needs no consent, nor does one that will
// fail, whose error it returns.
func (b *base) writeQuestion(path, contents string) (string, error) {
	p, err := b.root.Writable(path)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(p.Real)
	switch {
	case errors.Is(err, fs.ErrNotExist) && p.Inside:
		return "", nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("Make the file %s, which is outside of the working directory?\n\n%s", shownPath(p), indent(firstLines("", contents, maxDiffLines))), nil
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s is not a file", shownPath(p))
	}
	contents, _ = p.Style().Keep(contents)
	head := fmt.Sprintf("Replace the contents of %s?", shownPath(p))
	if info.Size() > maxCompared || len(contents) > maxCompared {
		return fmt.Sprintf("%s\n\nThe file has %d bytes, the new contents have %d. The files are too large to show the difference.", head, info.Size(), len(contents)), nil
	}
	old, _, err := fsys.Read(p, maxCompared)
	if edited, ok := b.root.EditorText(context.Background(), p, maxCompared); ok { // which has a limit of its own
		old = []byte(edited)
	}
	switch {
	case err != nil:
		return fmt.Sprintf("%s\n\nThe file cannot be read: %v", head, err), nil
	case string(old) == contents:
		return "", nil
	case !fsys.IsText(old):
		return fmt.Sprintf("%s\n\nIt holds %d bytes of binary data; the new contents are these:\n\n%s", head, len(old), indent(firstLines("", contents, maxDiffLines))), nil
	}
	return head + diffBlock(string(old), contents), nil
}

// diffBlock shows a difference.
func diffBlock(before, after string) string {
	diff, stat := patch.Diff(before, after)
	return fmt.Sprintf(" %s.\n\n%s", lineChanges(stat), indent(firstLines("", diff, maxDiffLines)))
}

// lineChanges says how many lines a difference adds and removes.
func lineChanges(stat patch.Stat) string {
	return fmt.Sprintf("%s added, %d removed", text.Count(stat.Added, "line"), stat.Removed)
}

// firstLines returns at most limit lines of text, each after prefix, and a note on how
// many are missing.
func firstLines(prefix, text string, limit int) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) <= limit {
		return prefix + strings.Join(lines, "\n"+prefix)
	}
	return fmt.Sprintf("%s%s\n[%d more lines are not shown]", prefix, strings.Join(lines[:limit], "\n"+prefix), len(lines)-limit)
}

// shownPath returns a path for a question: the real one if the path itself could mislead
// the user.
func shownPath(p fsys.Path) string {
	if p.Inside && p.Abs == p.Real {
		return text.Visible(p.Shown)
	}
	return text.Visible(p.Real)
}

func (b *base) fsPatch() tool.Tool {
	params := []param{
		{name: "path", kind: "string", description: "Path of the file, absolute or relative to the working directory. It has to exist, unless the patch is one of a new file, from /dev/null."},
		{name: "contents", kind: "string", description: "The patch, a unified diff. Each hunk begins with a line such as '@@ -10,4 +10,5 @@'; then unchanged lines begin with a blank, " +
			"removed lines with '-', and added lines with '+'. The unchanged and removed lines must match those of the file exactly, including blanks. Give about three unchanged lines around each change."},
	}
	return &guardedTool{
		native: native{
			name:        "fs_patch",
			description: "Change a part of a text file with a patch. Either all hunks of the patch are applied, or nothing is changed and the error names the hunk that does not fit.",
			params:      params,
			hints:       tool.Hints{Destructive: true},
			run: function(params, func(ctx context.Context, args writeArgs, call tool.Call) (string, error) {
				parsed, err := patch.Parse(args.Contents)
				if err != nil {
					return "", err
				}
				var text string
				c, err := b.rootOf(call).Edit(ctx, args.Path, maxEdited, parsed.New, func(old []byte) ([]byte, error) {
					text, err = parsed.Apply(string(old))
					return []byte(text), err
				})
				if err != nil {
					return "", err
				}
				_, stat := patch.Diff(string(c.Old), text)
				done := "changed"
				if c.Created {
					done = "created"
				}
				return fmt.Sprintf("%s %s: %s", done, args.Path, lineChanges(stat)), nil
			}),
		},
		consent: consent(params, func(args writeArgs) (string, error) {
			return b.patchQuestion(args.Path, args.Contents)
		}),
	}
}

// patchQuestion returns the question about a file that a patch changes. A patch that
// changes nothing needs no consent, nor does one that does not apply, whose error it
// returns.
func (b *base) patchQuestion(path, contents string) (string, error) {
	p, err := b.root.Writable(path)
	if err != nil {
		return "", err
	}
	parsed, err := patch.Parse(contents)
	if err != nil {
		return "", err
	}
	if _, missing := os.Stat(p.Real); parsed.New && errors.Is(missing, fs.ErrNotExist) {
		text, err := parsed.Apply("")
		if err != nil {
			return "", err
		}
		return b.writeQuestion(path, text)
	}
	old, _, err := fsys.Text(p, maxEdited)
	if err != nil {
		return "", err
	}
	if edited, ok := b.root.EditorText(context.Background(), p, maxEdited); ok { // likewise
		old = []byte(edited)
	}
	text, err := parsed.Apply(string(old))
	if err != nil || text == string(old) {
		return "", err
	}
	return fmt.Sprintf("Change %s?", shownPath(p)) + diffBlock(string(old), text), nil
}

func (b *base) fsMkdir() tool.Tool {
	params := []param{{name: "path", kind: "string", description: "Path of the directory, absolute or relative to the working directory."}}
	return &guardedTool{
		native: native{
			name:        "fs_mkdir",
			description: "Create a directory, and the directories above it that are missing.",
			params:      params,
			hints:       tool.Hints{Destructive: true},
			run: function(params, func(ctx context.Context, args pathArgs, call tool.Call) (string, error) {
				_, created, err := b.rootOf(call).Mkdir(ctx, args.Path)
				switch {
				case err != nil:
					return "", err
				case !created:
					return fmt.Sprintf("the directory %s exists already", args.Path), nil
				}
				return "created the directory " + args.Path, nil
			}),
		},
		consent: consent(params, func(args pathArgs) (string, error) {
			p, err := b.root.Writable(args.Path)
			if err != nil || p.Inside {
				return "", err
			}
			return fmt.Sprintf("Make the directory %s, which is outside of the working directory?", shownPath(p)), nil
		}),
	}
}

func (b *base) fsRm() tool.Tool {
	params := []param{{name: "path", kind: "string", description: "Path of the file or directory, absolute or relative to the working directory."}}
	return &guardedTool{
		native: native{
			name:        "fs_rm",
			description: "Remove a file, or a directory with everything in it. Of a symbolic link only the link itself is removed.",
			params:      params,
			hints:       tool.Hints{Destructive: true},
			run: function(params, func(ctx context.Context, args pathArgs, call tool.Call) (string, error) {
				e, err := b.rootOf(call).Remove(ctx, args.Path)
				if err != nil {
					return "", err
				}
				return "removed the " + e.String(), nil
			}),
		},
		consent: consent(params, func(args pathArgs) (string, error) {
			e, err := b.root.Removable(context.Background(), args.Path) // it counts up to a limit only
			if err != nil {
				return "", err
			}
			e.Path.Shown = shownPath(e.Path)
			return fmt.Sprintf("Remove the %s?", e), nil
		}),
	}
}
