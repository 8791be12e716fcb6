package trust

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"loki/internal/agent/workspace"
	"loki/internal/agent/workspace/skill"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/file/atomicfile"
	"loki/internal/base/text"
	"loki/internal/llm/event"
	"loki/internal/tool/builtin/patch"
)

// WorkspaceKind is the kind of a record whose files instruct models that work in the directory. Each of them is trusted by itself: a
// file that is new or has changed does not count, the others do.
const WorkspaceKind = "workspace"

// SkillKind is the kind of a record of a skill whose list of tools the user has allowed, for the skill as it was then.
const SkillKind = "skill"

// SkillTools reports whether the user has allowed the tools that a skill lists, for the skill as it is now. With keep it records that.
func (s *Service) SkillTools(ctx context.Context, of skill.Skill, keep bool) (bool, error) {
	content, err := of.Content()
	if err != nil {
		return false, err
	}
	files := make([]File, len(content))
	for i, f := range content {
		files[i] = File{Name: f.Name, Mode: plain, Sum: f.Sum}
	}
	sum := sumOf(files)
	if !keep {
		before, _, err := s.Store().Lookup(of.Dir, SkillKind)
		return before.Sum == sum, err
	}
	err = s.Store().edit(ctx, of.Dir, SkillKind, time.Now(), func(r *Record) { r.Sum, r.Files = sum, files })
	return err == nil, err
}

// Files returns what tells which files of the workspace at root the user trusts, for [workspace.Reader]. A record that cannot be read
// has nothing.
func (s *Service) Files(root string) func(name, sum string) workspace.State {
	if s.inTrustedDirs(root) {
		return func(string, string) workspace.State { return workspace.Used }
	}
	known := make(map[string]string)
	r, _, _ := s.Store().Lookup(root, WorkspaceKind)
	for _, f := range r.Files {
		known[f.Name] = f.Sum
	}
	return func(name, sum string) workspace.State {
		switch known[name] {
		case sum:
			return workspace.Used
		case "":
			return workspace.Untrusted
		}
		return workspace.Changed
	}
}

// Intact reports whether all files of a record of [WorkspaceKind] or [SkillKind] are there as they were.
func (r Record) Intact() bool {
	return !slices.ContainsFunc(r.Files, func(f File) bool {
		data, err := os.ReadFile(filepath.Join(r.Dir, filepath.FromSlash(f.Name)))
		return err != nil || textSum(data) != f.Sum
	})
}

// AddFiles records that the user trusts files of a workspace as they are, in addition to the files that they trusted before.
func (s *Service) AddFiles(ctx context.Context, root string, files []workspace.File) error {
	err := s.Store().edit(ctx, root, WorkspaceKind, time.Now(), func(r *Record) {
		for _, f := range files {
			at, there := slices.BinarySearchFunc(r.Files, File{Name: f.Name}, byName)
			if !there {
				r.Files = slices.Insert(r.Files, at, File{})
			}
			r.Files[at] = File{Name: f.Name, Mode: plain, Sum: f.Sum}
		}
		r.Sum = sumOf(r.Files)
	})
	if err != nil {
		return fault.Wrap(fault.Config, err, "the record of what is trusted cannot be written")
	}
	for _, f := range files { // for the difference when it changes; without it all of the file is shown
		_ = atomicfile.Write(s.copy(f.Sum), []byte(f.Text()), atomicfile.Options{Mode: atomicfile.Private})
	}
	return nil
}

// copy returns where the text with a digest is kept that the user trusted.
func (s *Service) copy(sum string) string {
	return filepath.Join(s.Agents.Paths.StateDir, "trusted", sum)
}

// ChangedText returns what a file has that the user has not trusted: what is different from the text that they trusted, or all of it.
func (s *Service) ChangedText(root string, f workspace.File) string {
	r, _, _ := s.Store().Lookup(root, WorkspaceKind)
	at, known := slices.BinarySearchFunc(r.Files, File{Name: f.Name}, byName)
	if f.State != workspace.Changed || !known {
		return f.Text()
	}
	if old, err := os.ReadFile(s.copy(r.Files[at].Sum)); err == nil {
		diff, _ := patch.Diff(string(old), f.Text())
		return diff
	}
	return f.Text()
}

// SettleFiles asks the user whether the files of a workspace that they do not trust may instruct models, unless they were asked before
// in this process. Where no user can be asked, and in a server, it warns once. It reports whether they are trusted now. The error is that of an
// interrupted question, or of the record.
func (s *Service) SettleFiles(ctx context.Context, root string, files []workspace.File, asker ask.Asker) (bool, error) {
	if len(files) == 0 {
		return false, nil
	}
	select {
	case s.asking <- struct{}{}:
		defer func() { <-s.asking }()
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	key := root
	for _, f := range files {
		key += "\n" + f.Sum
	}
	if slices.Contains(s.settled, key) {
		return false, nil
	}
	if !s.Serving() && asker != nil {
		yes, err := s.AskFiles(ctx, asker, root, files)
		switch {
		case err == nil && yes:
			return true, s.AddFiles(ctx, root, files)
		case err == nil:
			s.settled = append(s.settled, key)
			return false, nil
		case !errors.Is(err, ask.ErrUnavailable) && fault.CodeOf(err) != fault.Suspended:
			return false, err
		}
	}
	s.settled = append(s.settled, key)
	event.WarnText(ctx, notTrusted(root, files))
	return false, nil
}

// AskFiles asks whether to trust files of a workspace as they are now.
func (s *Service) AskFiles(ctx context.Context, asker ask.Asker, root string, files []workspace.File) (bool, error) {
	const yes, no = "trust them", "no"
	answer, err := asker.Ask(ctx, ask.Question{
		Kind: ask.Select, Text: s.filesQuestion(root, files), Options: []string{no, yes}, Consent: true, Affirms: yes, Lasts: true,
	})
	return answer == yes, err
}

// notTrusted says that files are not used.
func notTrusted(root string, files []workspace.File) string {
	plain, skills := bySkill(files)
	var names []string
	for _, f := range plain {
		names = append(names, text.Visible(f.Name))
	}
	if len(skills) > 0 {
		names = append(names, text.Count(len(skills), "skill"))
	}
	what, are := names[0], "is not used, because it is"
	if len(names) > 1 {
		what = strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
	}
	if len(names) > 1 || len(skills) > 1 {
		are = "are not used, because they are"
	}
	return what + " " + are + " not trusted; loki --trust " + text.Word(root) + " shows what they say"
}

// bySkill tells the files with instructions from the skills, in the order of their files.
func bySkill(files []workspace.File) (plain []workspace.File, skills [][]workspace.File) {
	for _, f := range files {
		switch n := len(skills); {
		case f.Of == "":
			plain = append(plain, f)
		case n > 0 && skills[n-1][0].Of == f.Of:
			skills[n-1] = append(skills[n-1], f)
		default:
			skills = append(skills, []workspace.File{f})
		}
	}
	return plain, skills
}

// maxShown is how many lines of a file a question shows.
const maxShown = 12

// filesQuestion returns the question whether files of a workspace may instruct models, with the beginning of what they say.
func (s *Service) filesQuestion(root string, files []workspace.File) string {
	var b strings.Builder
	plain, skills := bySkill(files)
	var what []string
	if len(plain) > 0 {
		what = append(what, text.Count(len(plain), "file")+" with instructions for models")
	}
	if len(skills) > 0 {
		what = append(what, text.Count(len(skills), "skill"))
	}
	fmt.Fprintf(&b, "%s came with the directory\n\n    %s\n", strings.Join(what, " and "), text.Visible(root))
	for _, f := range files {
		state := "new to you"
		if f.State == workspace.Changed {
			state = "changed since you trusted it"
		}
		if f.Of != "" && f.Text() == "" {
			fmt.Fprintf(&b, "\n%s of the skill %s, %s\n", text.Visible(f.Name), text.Visible(f.Of), state)
			continue
		}
		fmt.Fprintf(&b, "\n%s, %s:\n\n", text.Visible(f.Name), state)
		lines := strings.Split(strings.TrimRight(s.ChangedText(root, f), "\n"), "\n")
		for _, line := range lines[:min(len(lines), maxShown)] {
			fmt.Fprintf(&b, "    %s\n", text.Visible(line))
		}
		if more := len(lines) - maxShown; more > 0 {
			fmt.Fprintf(&b, "    [%s more: loki --trust %s shows them]\n", text.Count(more, "line"), text.Word(root))
		}
	}
	b.WriteString("\nUntil you trust them, no model gets them. Do you trust them as they are now?")
	return b.String()
}
