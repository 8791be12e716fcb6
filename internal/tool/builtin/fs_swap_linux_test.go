package builtin_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"loki/internal/base/fault/steps"
	"loki/internal/base/text/sample"
	"loki/internal/llm/chat"
	"loki/internal/tool"
	"loki/internal/tool/permission"
)

// TestSwappedWhileJudged has another program exchange links and directories while files are read and written by way of them. Only what
// a call was judged for is read or written.
func TestSwappedWhileJudged(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{
		"open.txt": "all may read TOP\n", "secret/key": "TOPSECRET\n", "open/key": "TOP\n", "od/config": "ours\n", "git/.git/config": "mine\n", "git/.git/HEAD": "mine\n",
		"swapped/key": "TOP\n", "moved/config": "ours\n",
	})
	git := filepath.Join(dir, "git", ".git")
	judge, err := permission.New(permission.Options{Root: dir, Rules: permission.Rules{List: []permission.Rule{
		{Tool: "fs_*", Action: permission.Deny, Paths: []string{"secret/**"}}, {Tool: "fs_*", Action: permission.Deny, Paths: []string{"git/**"}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	box := newBox(t, at(dir), tool.Options{Judge: judge, AutoConfirm: true})
	done := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		link := func(target, name string) {
			_ = os.Symlink(target, filepath.Join(dir, name+".new"))
			_ = os.Rename(filepath.Join(dir, name+".new"), filepath.Join(dir, name))
		}
		exchange := func(a, b string) {
			_ = unix.Renameat2(unix.AT_FDCWD, filepath.Join(dir, a), unix.AT_FDCWD, filepath.Join(dir, b), unix.RENAME_EXCHANGE)
		}
		_ = os.Symlink("secret", filepath.Join(dir, "swapped.link"))
		_ = os.Symlink("git/.git", filepath.Join(dir, "moved.link"))
		for {
			select {
			case <-done:
				return
			default:
			}
			link("open.txt", "x")
			link("od", "e")
			link("secret/key", "x")
			link("git/.git", "e")
			exchange("swapped", "swapped.link")
			exchange("moved", "moved.link")
		}
	})
	stop := sync.OnceFunc(func() {
		close(done)
		all.Wait()
	})
	defer stop()
	for i := range 3000 / sample.Step(4) {
		for _, c := range []chat.ToolCall{
			{Name: "fs_cat", Arguments: `{"path":"x"}`},
			{Name: "fs_grep", Arguments: `{"path":"x","pattern":"TOP"}`},
			{Name: "fs_cat", Arguments: `{"path":"swapped/key"}`},
			{Name: "fs_read", Arguments: `{"path":"swapped/key"}`},
			{Name: "fs_grep", Arguments: `{"path":"swapped","pattern":"TOP"}`},
			{Name: "fs_ls", Arguments: `{"path":"e"}`},
			{Name: "fs_write", Arguments: `{"path":"e/new","contents":"evil"}`},
			{Name: "fs_write", Arguments: `{"path":"moved/new","contents":"evil"}`},
			{Name: "fs_write", Arguments: `{"path":"e/sub/new","contents":"evil"}`},
			{Name: "fs_rm", Arguments: `{"path":"moved/HEAD"}`},
			{Name: "fs_mkdir", Arguments: `{"path":"e/made"}`},
		} {
			out, _, _ := box.Call(t.Context(), c, steps.Steps{})
			if strings.Contains(out, "TOPSECRET") || c.Name == "fs_ls" && strings.Contains(out, "HEAD") {
				t.Fatalf("round %d: %s %s returned %s", i, c.Name, c.Arguments, out)
			}
			for _, name := range []string{"od/new", "od/sub/new", "moved/new", "od/made"} {
				_ = os.RemoveAll(filepath.Join(dir, name))
			}
		}
	}
	stop()
	entries, err := os.ReadDir(git)
	if err != nil || len(entries) != 2 || read(t, filepath.Join(git, "config")) != "mine\n" {
		t.Errorf("in the directory that a rule denies there is %v, %v", entries, err)
	}
}
