package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"loki/internal/agent/workspace/worktree"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/frontend/command/display"
	"loki/internal/workflow/graph"
)

// newWorktree is the value of --worktree without a name. The next word is never its value.
const newWorktree = "*"

// leaveWorktree ends work, of which err is the result. If it was in a worktree, also in that of a run that was resumed, the user decides what
// happens with it. What the work did not finish stays there. Again does the work again, with another text.
func (c *command) leaveWorktree(ctx context.Context, err error, again func() error) error {
	t := c.app.EnteredWorktree()
	if t == nil {
		return err
	}
	if err != nil {
		note, failed := t.Pause(context.WithoutCancel(ctx), err)
		c.note(note)
		return errors.Join(err, failed)
	}
	var asker ask.Asker
	if c.InTerminal && c.ErrTerminal {
		asker = c.terminal()
	}
	note, err := t.Settle(context.WithoutCancel(ctx), asker, func(_ context.Context, files []string) error {
		c.opts.emptySession = false // what was said in it is continued
		c.opts.files, c.opts.text = nil, []string{worktree.ConflictText(files)}
		note := "the branch was merged with what the repository has meanwhile"
		if len(files) > 0 {
			note += "; conflicts to resolve, between marks (<<<<<<<): " + strings.Join(files, ", ")
		}
		c.note(note)
		return again()
	})
	c.note(note)
	return err
}

// enterWorktree enters the worktree that the options name. Files that the options name stay the ones of the working directory unless the
// worktree has them.
func (c *command) enterWorktree(ctx context.Context) error {
	w, err := c.worktreeOfAgent()
	if err != nil || c.opts.worktree == "" && w == nil {
		return err
	}
	if w == nil {
		w = &graph.Worktree{}
	}
	name := strings.TrimPrefix(c.opts.worktree, newWorktree)
	dir, err := os.Getwd()
	if err != nil {
		return fault.Wrap(fault.Failure, err, "the working directory")
	}
	t, err := c.app.EnterWorktree(ctx, name, *w)
	if err != nil {
		return err
	}
	paths := []*string{&c.opts.schema, &c.opts.record, &c.opts.answers}
	if strings.ContainsAny(c.opts.agent, `/\`) {
		paths = append(paths, &c.opts.agent)
	}
	for i := range c.opts.files {
		if _, err := os.Lstat(c.opts.files[i]); err != nil {
			paths = append(paths, &c.opts.files[i])
		}
	}
	for _, p := range paths {
		if _, err := os.Lstat(filepath.Join(dir, *p)); *p != "" && !filepath.IsAbs(*p) && err == nil {
			*p = filepath.Join(dir, *p)
		}
	}
	c.note("works in the worktree " + t.Name + ", on the branch " + t.Branch())
	c.concludeMerge(ctx, t)
	return nil
}

// concludeMerge ends a merge that was left in a worktree, and says what is left there of other work of git.
func (c *command) concludeMerge(ctx context.Context, t *worktree.Tree) {
	switch operation, marked, err := t.Conclude(ctx); {
	case err != nil:
		c.warn(strings.TrimSuffix(err.Error()+"; "+fault.HintOf(err), "; "))
	case len(marked) > 0:
		c.note("a " + operation + " in the worktree is unfinished; conflicts to resolve, between marks (<<<<<<<): " + text.Visible(strings.Join(marked, ", ")))
	case operation != "":
		c.note("the unfinished " + operation + " in the worktree was committed")
	}
}

// worktreeOfAgent returns how the plain agent of -a works in a worktree, nil if it does not.
func (c *command) worktreeOfAgent() (*graph.Worktree, error) {
	if c.opts.agent == "" || c.opts.action.flag != "agent" || c.opts.dryRun || c.opts.replay != "" || c.opts.onlyBuilds() {
		return nil, nil
	}
	of, _, err := c.loadAgent(c.opts.agent)
	if err != nil || of.Graph != nil {
		return nil, nil // what is wrong is reported where the agent is used
	}
	return c.app.WorktreeOf(of), nil
}

// listWorktrees lists the worktrees of all repositories.
func (c *command) listWorktrees(context.Context) error {
	list, err := c.app.Worktrees().List()
	if err != nil {
		return err
	}
	table := display.List(nil, list, func(e worktree.Entry) []string {
		state := "free"
		if e.InUse {
			state = "in use"
		}
		return []string{e.Name, state, e.Created.Local().Format(time.DateTime), text.Visible(e.Source)}
	})
	return printList(c, append([]worktree.Entry{}, list...), "no worktrees; to make one: loki --worktree TEXT", table)
}

// removeWorktree removes the worktree of --remove-worktree.
func (c *command) removeWorktree(ctx context.Context) error {
	var asker ask.Asker = ask.Unavailable{}
	if c.InTerminal && c.ErrTerminal {
		asker = c.terminal()
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	note, err := c.app.Worktrees().Remove(ctx, dir, c.opts.value, asker, c.opts.yes)
	c.note(note)
	return err
}
