package worktree

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/llm/event"
	"loki/internal/workflow/graph"
)

// What can be done with the work in a worktree.
const (
	mergeIt   = "merge"
	applyIt   = "apply, without a commit"
	keepIt    = "keep the branch"
	resolveIt = "resolve, then ask again"
	discardIt = "discard"
)

// Settle ends the work in the worktree: the user decides. Where no user can be asked, its branch is kept. Again has the agent work on after the
// worktree got what the checkout has meanwhile; nil if it cannot. The result says what was done.
func (t *Tree) Settle(ctx context.Context, asker ask.Asker, again func(ctx context.Context, files []string) error) (note string, err error) {
	for tries := 0; ; tries++ {
		c, err := t.Commit(ctx)
		if err != nil {
			t.Close()
			return "", fault.Wrap(fault.Failure, err, "the worktree %s stays as it is", t.Name).WithHint("look at it in %s", t.Root)
		}
		if c.Commits == 0 {
			return "", t.Discard(ctx)
		}
		if tries == 2 {
			again = nil
		}
		answer, err := t.askForWork(ctx, c, asker, again != nil)
		switch {
		case err != nil:
		case answer == resolveIt:
			var files []string
			if files, err = t.Renew(ctx); err == nil {
				err = again(ctx, files)
			}
			if err == nil {
				continue
			}
		default:
			note, err = t.settle(ctx, c, answer)
		}
		if err != nil && answer != discardIt { // for example, the checkout has changed since
			t.Close()
			note = t.stays()
		}
		return note, err
	}
}

// settle does what the user has chosen, except to resolve conflicts, and says what was done.
func (t *Tree) settle(ctx context.Context, c Change, answer string) (string, error) {
	switch answer {
	case mergeIt:
		return "merged " + text.Count(c.Commits, "commit") + " of " + c.Branch, t.Merge(ctx, c)
	case applyIt:
		return "applied the changes of " + text.Count(len(c.Files), "file"), t.Apply(ctx, c)
	case discardIt:
		return "discarded the work in the worktree " + t.Name, t.Discard(ctx)
	}
	err := t.Keep(ctx, c)
	return fmt.Sprintf("kept the branch %s with %s; to merge it: git merge %[1]s", t.KeptBranch(), text.Count(c.Commits, "commit")), err
}

// Pause leaves the worktree whose work ended by an error. What was done stays there.
func (t *Tree) Pause(ctx context.Context, cause error) (string, error) {
	code := fault.CodeOf(cause)
	if c, err := t.Commit(ctx); err == nil && c.Commits == 0 && code != fault.Suspended && code != fault.Canceled {
		return "", t.Discard(ctx)
	}
	t.Close()
	return t.stays(), nil
}

// stays says that the worktree is there for later.
func (t *Tree) stays() string {
	return "the worktree stays; to enter it again: loki --worktree=" + t.Name
}

// maxDiffLines is how much of a diff a question shows.
const maxDiffLines = 60

// askForWork asks what to do with the work in a worktree.
func (t *Tree) askForWork(ctx context.Context, c Change, asker ask.Asker, resolves bool) (string, error) {
	switch t.Finish {
	case graph.KeepIt:
		return keepIt, nil
	case graph.DiscardIt:
		return discardIt, nil
	}
	if asker == nil || asker == (ask.Unavailable{}) {
		return keepIt, nil
	}
	o, done, err := t.Try(ctx, c)
	done()
	if err != nil {
		return keepIt, nil // it is there for the user to look at
	}
	diff, err := t.Diff(ctx, c)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "The worktree %s has %s:\n\n", t.Name, text.Count(c.Commits, "commit"))
	lines := strings.Split(text.Visible(diff), "\n")
	for _, line := range lines[:min(len(lines), maxDiffLines)] {
		b.WriteString(line + "\n")
	}
	if more := len(lines) - maxDiffLines; more > 0 {
		fmt.Fprintf(&b, "[%s more]\n", text.Count(more, "line"))
	}
	fmt.Fprintf(&b, "\n%s\n", c.Stat)
	var options []string
	if len(c.Unresolved) > 0 {
		o.Merge, o.Apply = c.Unresolved, c.Unresolved
		fmt.Fprintf(&b, "\nConflicts are not resolved: there are marks (<<<<<<<) in %s\n", text.Visible(strings.Join(c.Unresolved, ", ")))
	}
	for _, way := range []struct {
		option, cannot string
		files          []string
	}{{mergeIt, "merged", o.Merge}, {applyIt, "applied", o.Apply}} {
		switch {
		case o.Bare:
		case len(way.files) == 0:
			options = append(options, way.option)
		case len(c.Unresolved) > 0: // which was said
		default:
			fmt.Fprintf(&b, "\nIt cannot be %s: a conflict, changes that you have not committed, or a filter of git is in the way in %s\n", way.cannot, text.Visible(strings.Join(way.files[:min(len(way.files), 10)], ", ")))
		}
	}
	if c.Unfinished != "" {
		fmt.Fprintf(&b, "\nA %s is unfinished: only its commits up to now are here. See git status in %s\n", c.Unfinished, t.Root)
	}
	if locked := o.LockNote(); locked != "" {
		b.WriteString("\n" + locked + "\n")
	}
	if len(o.Merge) > 0 && resolves {
		options = append(options, resolveIt)
	}
	b.WriteString("\nWhat should happen with it?")
	answer, err := asker.Ask(ctx, ask.Question{Kind: ask.Select, Text: b.String(), Options: append(options, keepIt, discardIt), Consent: true})
	if err == nil && answer == discardIt {
		const no = "no, keep the branch"
		answer, err = asker.Ask(ctx, ask.Question{Kind: ask.Select, Text: "All of this work will be gone. Discard it?", Options: []string{no, discardIt}, Consent: true})
	}
	if errors.Is(err, ask.ErrUnavailable) {
		return keepIt, nil
	}
	return answer, err
}

// ConflictText asks an agent to resolve conflicts.
func ConflictText(files []string) string {
	if len(files) == 0 {
		return "The branch was merged with what the repository has meanwhile. Check that your work still fits, and correct it if it does not."
	}
	return "The branch was merged with what the repository has meanwhile. These files have conflicts between marks (<<<<<<<, =======, >>>>>>>): " +
		strings.Join(files, ", ") + ". Resolve them so that both changes work, and remove the marks."
}

// Leave ends the work of a child agent in the worktree, and returns what is kept of it as a branch, nil for nothing. Later keeps it as it is.
func (t *Tree) Leave(ctx context.Context, later bool, events event.Scope) *Change {
	if later {
		t.Close()
		return nil
	}
	c, err := t.Commit(ctx)
	switch {
	case err != nil:
		t.Close()
	case c.Commits == 0 || t.Finish == graph.DiscardIt:
		err = t.Discard(ctx)
	default:
		if err = t.Keep(ctx, c); err == nil {
			_ = events.Emit(ctx, event.ToolOutput{Name: "worktree", Text: "kept the branch " + t.KeptBranch() + " with " + text.Count(c.Commits, "commit")})
			return &c
		}
	}
	if err != nil {
		_ = events.Emit(ctx, event.Warning{Text: fmt.Sprintf("the worktree %s stays at %s: %v", t.Name, t.Root, err)})
	}
	return nil
}

// Remove removes the worktree called name of the repository around a directory. Work in it stays as its branch. If that is damaged, the user has to consent, which yes says that they
// have done.
func (s *Store) Remove(ctx context.Context, dir, name string, asker ask.Asker, yes bool) (string, error) {
	t, err := s.Find(ctx, dir, name)
	if err != nil {
		return "", err
	}
	if t.Finish == graph.DiscardIt {
		t.Finish = graph.Ask
	}
	if _, err := t.Commit(ctx); err != nil {
		lost := fmt.Sprintf("the worktree %s is damaged, so neither its commits nor its files can be kept as a branch: %v", name, err)
		if !yes {
			answer, err := asker.Ask(ctx, ask.Question{Kind: ask.Select, Text: strings.ToUpper(lost[:1]) + lost[1:] + ".\n\nIts files are in " + t.Root + ". Remove them, too?", Options: []string{"no", "yes"}, Consent: true})
			if errors.Is(err, ask.ErrUnavailable) {
				err = fault.New(fault.Failure, "%s", lost).WithHint("copy what you need from %s, then: loki --remove-worktree %s --yes", t.Root, name)
			}
			if err != nil || answer != "yes" {
				t.Close()
				return "", err
			}
		}
		return "removed the damaged worktree " + name + " with all that was in it", t.Discard(ctx)
	}
	note, err := t.Settle(ctx, nil, nil)
	if note == "" && err == nil {
		note = "removed the worktree " + name + ", which had no work"
	}
	return note, err
}
