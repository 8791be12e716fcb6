package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"loki/internal/agent"
	"loki/internal/agent/team"
	"loki/internal/agent/workspace/worktree"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/process"
	"loki/internal/base/process/environ"
	"loki/internal/base/process/sandbox"
	"loki/internal/base/text"
	"loki/internal/conversation"
	"loki/internal/llm/event"
	"loki/internal/workflow/graph"
)

// worktreesDir is the part of the state directory in which worktrees are.
const worktreesDir = "worktrees"

// Worktrees returns the copies of repositories in which agents work.
func (a *App) Worktrees() *worktree.Store {
	home, _ := os.UserHomeDir() // if there is none, ~ is not expanded
	own, files := a.ownPlaces()
	return &worktree.Store{
		Dir: filepath.Join(a.Paths.StateDir, worktreesDir), Environ: a.Env.Environ(), Setup: a.setUpWorktree,
		Sandbox: func(t *worktree.Tree) (*sandbox.Sandbox, error) { // git is to see what rules deny to models
			return sandbox.New(sandbox.Options{
				Settings: sandbox.Settings{Disabled: a.Config.Sandbox.Disabled, Read: t.Read}, Workspace: t.Root, Home: home, Own: own, Files: files, State: a.Paths.StateDir, Getenv: a.Env.Get,
			}), nil
		},
	}
}

// setUpWorktree runs the command that prepares a worktree, in the sandbox, see [worktree.Store].
func (a *App) setUpWorktree(ctx context.Context, t *worktree.Tree, s graph.Setup) error {
	box, err := a.Worktrees().Sandbox(t)
	if err != nil {
		return err
	}
	shell := a.Shell()
	say := func(line string) { toolOutput(ctx, "worktree.setup", line) }
	_, err = process.Run(ctx, process.Command{
		Path: shell.Path, Args: []string{shell.Flag, s.Command}, Dir: t.Dir(), Env: withoutGit(a.Child().Environ), OnStdout: say, OnStderr: say,
		Timeout: 10 * time.Minute, HasTimeout: true, Confinement: box.Box(s.Declaration, sandbox.Needs{}),
	})
	return err
}

// withoutGit returns an environment without the variables that lead git to another repository than that of its directory.
func withoutGit(entries []string) []string {
	return environ.Merge(entries, nil, worktree.LeavingVariables(entries)...)
}

// EnterWorktree makes the worktree called name of the repository around the working directory, "" for a new one, the working directory.
func (a *App) EnterWorktree(ctx context.Context, name string, s graph.Worktree) (*worktree.Tree, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, fault.Wrap(fault.Failure, err, "the working directory")
	}
	paths, err := a.Paths.Absolute()
	if err != nil {
		return nil, fault.Wrap(fault.Failure, err, "the working directory")
	}
	t, err := a.Worktrees().Open(ctx, dir, name, s)
	if err != nil {
		return nil, err
	}
	if err := os.Chdir(t.Dir()); err != nil {
		t.Close()
		return nil, err
	}
	a.tree = t
	a.setWorkDir(t.Dir(), paths)
	return t, nil
}

// EnteredWorktree returns the worktree in which this process works, nil if it is in none.
func (a *App) EnteredWorktree() *worktree.Tree { return a.tree }

// What can be done with the work in a worktree.
const (
	mergeIt   = "merge"
	applyIt   = "apply, without a commit"
	keepIt    = "keep the branch"
	resolveIt = "resolve, then ask again"
	discardIt = "discard"
)

// FinishWorktree ends the work in a worktree: the user decides. Where no user can be asked, its branch is kept. Again has the agent work on after the
// worktree got what the checkout has meanwhile; nil if it cannot. The result says what was done.
func (a *App) FinishWorktree(ctx context.Context, t *worktree.Tree, asker ask.Asker, again func(ctx context.Context, files []string) error) (string, error) {
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
		answer, err := a.askForWork(ctx, t, c, asker, again != nil)
		if err != nil {
			t.Close()
			return stays(t), err
		}
		switch answer {
		case mergeIt:
			if err := t.Merge(ctx, c); err != nil { // the checkout has changed since
				t.Close()
				return stays(t), err
			}
			return "merged " + text.Count(c.Commits, "commit") + " of " + c.Branch, nil
		case applyIt:
			if err := t.Apply(ctx, c); err != nil {
				t.Close()
				return stays(t), err
			}
			return "applied the changes of " + text.Count(len(c.Files), "file"), nil
		case discardIt:
			return "discarded the work in the worktree " + t.Name, t.Discard(ctx)
		case resolveIt:
			files, err := t.Renew(ctx)
			if err == nil {
				err = again(ctx, files)
			}
			if err != nil {
				t.Close()
				return stays(t), err
			}
		default:
			if err := t.Keep(ctx, c); err != nil {
				return "", err
			}
			return fmt.Sprintf("kept the branch %s with %s; to merge it: git merge %[1]s", t.KeptBranch(), text.Count(c.Commits, "commit")), nil
		}
	}
}

// PauseWorktree leaves a worktree whose work ended by an error. What was done stays there.
func (a *App) PauseWorktree(ctx context.Context, t *worktree.Tree, cause error) (string, error) {
	code := fault.CodeOf(cause)
	if c, err := t.Commit(ctx); err == nil && c.Commits == 0 && code != fault.Suspended && code != fault.Canceled {
		return "", t.Discard(ctx)
	}
	t.Close()
	return stays(t), nil
}

// stays says that a worktree is there for later.
func stays(t *worktree.Tree) string {
	return "the worktree stays; to enter it again: loki --worktree=" + t.Name
}

// maxDiffLines is how much of a diff a question shows.
const maxDiffLines = 60

// askForWork asks what to do with the work in a worktree.
func (a *App) askForWork(ctx context.Context, t *worktree.Tree, c worktree.Change, asker ask.Asker, resolves bool) (string, error) {
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

// WorktreeOf returns how an agent works in a worktree of its own, nil if it does not.
func (a *App) WorktreeOf(of agent.Agent) *graph.Worktree {
	return a.boundWorktree(of.InForce.Worktree, of)
}

// boundWorktree returns w, which may be nil, without what an agent may not do because it is not trusted.
func (a *App) boundWorktree(w *graph.Worktree, of agent.Agent) *graph.Worktree {
	if w == nil || a.Trust.Trusts(of) {
		return w
	}
	return &graph.Worktree{Base: w.Base, Dirty: w.Dirty, Finish: w.Finish}
}

// agentPlace takes the worktree in which an agent works whose process is in the checkout, see [conversation.Service].
func (a *App) agentPlace(ctx context.Context, of agent.Agent, name, at string) (*conversation.Place, error) {
	w, store := a.WorktreeOf(of), a.Worktrees()
	dir, err := workingDir()
	if err != nil || of.Graph != nil || a.dryRun || a.recorder != nil || a.player != nil || w == nil && store.Look(at) == nil || store.Look(dir) != nil {
		return nil, err
	}
	t, err := store.At(ctx, at)
	if t == nil && err == nil {
		t, err = store.Open(ctx, dir, cmp.Or(name, worktree.Name(of.Name, "")), *w)
	}
	if err != nil {
		return nil, err
	}
	return &conversation.Place{
		Dir: t.Dir(), Name: t.Name, Note: "works in the worktree " + t.Name + ", on the branch " + t.Branch(),
		Leave: func(ctx context.Context, cause error, asker ask.Asker, again func(context.Context, string) error) (string, error) {
			if cause != nil {
				return a.PauseWorktree(ctx, t, cause)
			}
			return a.FinishWorktree(ctx, t, asker, func(ctx context.Context, files []string) error { return again(ctx, ConflictText(files)) })
		},
	}, nil
}

// ConflictText asks an agent to resolve conflicts.
func ConflictText(files []string) string {
	if len(files) == 0 {
		return "The branch was merged with what the repository has meanwhile. Check that your work still fits, and correct it if it does not."
	}
	return "The branch was merged with what the repository has meanwhile. These files have conflicts between marks (<<<<<<<, =======, >>>>>>>): " +
		strings.Join(files, ", ") + ". Resolve them so that both changes work, and remove the marks."
}

// leaveChild returns what ends the work of a child in a worktree, which may be nil, see [team.Child].
func (a *App) leaveChild(t *worktree.Tree, events event.Scope) func(ctx context.Context, later bool) *team.Work {
	return func(ctx context.Context, later bool) *team.Work {
		if t == nil {
			return nil
		}
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
				return &team.Work{Branch: t.KeptBranch(), Commits: c.Commits, Diffstat: c.Stat}
			}
		}
		if err != nil {
			_ = events.Emit(ctx, event.Warning{Text: fmt.Sprintf("the worktree %s stays at %s: %v", t.Name, t.Root, err)})
		}
		return nil
	}
}

// RemoveWorktree removes the worktree called name. Work in it stays as its branch. If that is damaged, the user has to consent, which yes says that they
// have done.
func (a *App) RemoveWorktree(ctx context.Context, name string, asker ask.Asker, yes bool) (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	t, err := a.Worktrees().Find(ctx, dir, name)
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
	note, err := a.FinishWorktree(event.NewContext(ctx, event.FromContext(ctx)), t, nil, nil)
	if note == "" && err == nil {
		note = "removed the worktree " + name + ", which had no work"
	}
	return note, err
}
