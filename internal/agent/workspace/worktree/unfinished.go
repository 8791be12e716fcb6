package worktree

import (
	"context"
	"os"
	"path/filepath"

	"loki/internal/base/fault"
)

// merging is the operation that a commit concludes with all files.
const merging = "merge"

// unfinishedOperation returns the operation of git that was begun and not ended, "" for none.
func (r repo) unfinishedOperation() string {
	for _, of := range []struct{ file, operation string }{
		{"rebase-merge", "rebase"},
		{"rebase-apply", "rebase"},
		{"MERGE_HEAD", merging},
		{"CHERRY_PICK_HEAD", "cherry-pick"},
		{"REVERT_HEAD", "revert"},
		{"sequencer", "cherry-pick or revert"},
	} {
		if _, err := os.Lstat(filepath.Join(r.own, of.file)); err == nil {
			return of.operation
		}
	}
	return ""
}

func (t *Tree) unfinishedError(operation string) error {
	return fault.New(fault.Failure, "a %s in the worktree %s is unfinished", operation, t.Name).
		WithHint("see git status in %s, then continue it or take it back, with --continue or --abort", t.Root)
}

// Conclude commits a merge that was begun in the worktree if no marks of conflicts are left. The result is the operation of git that was
// found, "" for none, and the files with marks. An error says what to do about another operation.
func (t *Tree) Conclude(ctx context.Context) (operation string, marked []string, err error) {
	r, err := t.repo(ctx)
	if err != nil {
		return "", nil, err
	}
	switch operation = r.unfinishedOperation(); operation {
	case "":
		return "", nil, nil
	case merging:
		if marked, err = r.marks(ctx, "diff", "HEAD"); err == nil && len(marked) == 0 {
			_, err = t.Commit(ctx)
		}
		return operation, marked, err
	default:
		return operation, nil, t.unfinishedError(operation)
	}
}
