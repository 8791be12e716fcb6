package builtin_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"loki/internal/base/fault/steps"
	"loki/internal/base/process/environ"
	"loki/internal/llm/chat"
	"loki/internal/tool"
	"loki/internal/tool/builtin"
	"loki/internal/tool/builtin/fsys"
)

// at are options of tools in a directory.
func at(dir string) builtin.Options {
	return builtin.Options{Dir: dir, Child: environ.Child{Environ: testEnviron()}, Getenv: env(map[string]string{"HOME": filepath.Join(dir, "home"), "USERPROFILE": filepath.Join(dir, "home")})}
}

type m = map[string]any

func TestReading(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 2500)
	var many strings.Builder
	for i := range 2500 {
		fmt.Fprintf(&many, "line %d\n", i+1)
	}
	dir := files(t, map[string]string{
		"a.txt": "one\r\ntwo\nthree", "empty": "", "long": long + "\nshort\n", "many": many.String(), "doc.json": "{\n  \"a\": 1\n}\n",
		"home/h.txt": "at home\n", "sub/x": "", "large": strings.Repeat("0123456789\n", 6000),
	})
	if err := os.Mkdir(filepath.Join(dir, "void"), 0o755); err != nil {
		t.Fatal(err)
	}
	o := at(dir)
	for _, tt := range []struct {
		name, tool string
		args       m
		want       string
	}{
		{"cat", "fs_cat", m{"path": "a.txt"}, "one\r\ntwo\nthree"},
		{"cat_json_as_it_is", "fs_cat", m{"path": "doc.json"}, "{\n  \"a\": 1\n}\n"},
		{"cat_home", "fs_cat", m{"path": "~/h.txt"}, "at home\n"},
		{"cat_absolute", "fs_cat", m{"path": filepath.Join(dir, "home", "h.txt")}, "at home\n"},
		{"read", "fs_read", m{"path": "a.txt"}, "1: one\n2: two\n3: three\n"},
		{"read_part", "fs_read", m{"path": "a.txt", "offset": 2, "limit": "1"}, "2: two\n[more lines follow: continue with offset 3]\n"},
		{"read_end", "fs_read", m{"path": "a.txt", "offset": 3}, "3: three\n"},
		{"read_empty", "fs_read", m{"path": "empty"}, "[the file is empty]\n"},
		{"read_long_line", "fs_read", m{"path": "long"}, "1: " + long[:2000] + " [500 more bytes of this line]\n2: short\n"},
		{"read_directory", "fs_read", m{"path": "home"}, "h.txt\n"},
		{"ls", "fs_ls", m{"path": "."}, "a.txt\ndoc.json\nempty\nhome/\nlarge\nlong\nmany\nsub/\nvoid/\n"},
		{"ls_empty", "fs_ls", m{"path": "void"}, "[the directory is empty]\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := output(t, o, tt.tool, tt.args); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	got := output(t, o, "fs_read", m{"path": "many"})
	if lines := strings.Split(got, "\n"); len(lines) != 2002 || lines[2000] != "[more lines follow: continue with offset 2001]" {
		t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-2])
	}
	got = output(t, o, "fs_read", m{"path": "large"})
	if !strings.HasPrefix(got, "[large has 66000 bytes.") || strings.Contains(got, "left out here") || !strings.Contains(got, "continue with offset") {
		t.Errorf("got %.100s ... %s", got, got[len(got)-100:])
	}
}

func TestSearching(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{
		"a.go": "package a\nfunc A() {}\n", "b/b.go": "package b\r\nfunc B() {}\r\n", "b/c.txt": "func in text\n", ".gitignore": "*.log\n/out/\n!keep.log\n",
		"x.log": "func\n", "keep.log": "func\n", "out/o.go": "func\n", "vendor/v.go": "func\n", "b/.ignore": "secret.go\n", "b/secret.go": "func\n",
		"app.min.js": "func\n", "bin": "func\x00\n", "build/y.go": "func\n",
	})
	o := at(dir)
	for _, tt := range []struct {
		name, tool string
		args       m
		want       string
	}{
		{"grep", "fs_grep", m{"pattern": `func \w`}, "a.go:2:func A() {}\nb/b.go:2:func B() {}\nb/c.txt:1:func in text\n"},
		{"grep_end_of_line", "fs_grep", m{"pattern": `\{\}$`}, "a.go:2:func A() {}\nb/b.go:2:func B() {}\n"},
		{"grep_any_case", "fs_grep", m{"pattern": "(?i)PACKAGE B"}, "b/b.go:1:package b\n"},
		{"grep_include", "fs_grep", m{"pattern": "func", "include": "*.{txt,log}"}, "b/c.txt:1:func in text\nkeep.log:1:func\n"},
		{"grep_include_path", "fs_grep", m{"pattern": "func", "include": "b/*"}, "b/b.go:2:func B() {}\nb/c.txt:1:func in text\n"},
		{"grep_generated_if_named", "fs_grep", m{"pattern": "func", "include": "*.min.js"}, "app.min.js:1:func\n"},
		{"grep_directory", "fs_grep", m{"pattern": "package", "path": "b"}, "b/b.go:1:package b\n"},
		{"grep_file", "fs_grep", m{"pattern": "package", "path": "b/b.go"}, "b/b.go:1:package b\n"},
		{"grep_skipped_if_named", "fs_grep", m{"pattern": "func", "path": "vendor"}, "vendor/v.go:1:func\n"},
		{"grep_nothing", "fs_grep", m{"pattern": "zzz"}, "[nothing matches in .]\n"},
		{"glob_name", "fs_glob", m{"pattern": "b.go"}, "b/b.go\n"},
		{"glob_path", "fs_glob", m{"pattern": "**/*.txt"}, "b/c.txt\n"},
		{"glob_absolute", "fs_glob", m{"pattern": filepath.ToSlash(dir) + "/b/*.txt"}, filepath.ToSlash(dir) + "/b/c.txt\n"},
		{"glob_nothing", "fs_glob", m{"pattern": "*.rs"}, "[no file matches *.rs in .]\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := output(t, o, tt.tool, tt.args); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestSearchLimits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 130 {
		path := filepath.Join(dir, fmt.Sprintf("f%03d", i))
		if err := os.WriteFile(path, []byte("needle\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, began, began.Add(time.Duration(i)*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.Split(output(t, at(dir), "fs_glob", m{"pattern": "*"}), "\n")
	if len(lines) != 102 || lines[0] != "f129" || lines[99] != "f030" || lines[100] != "[30 more files match; a narrower pattern or path shows them]" {
		t.Errorf("%d lines: %q ... %q", len(lines), lines[0], lines[len(lines)-2])
	}
	for range 20 { // whatever the workers do, these are the lines
		lines = strings.Split(output(t, at(dir), "fs_grep", m{"pattern": "needle"}), "\n")
		if len(lines) != 52 || lines[0] != "f000:1:needle" || lines[49] != "f049:1:needle" || !strings.HasPrefix(lines[50], "[more lines match") {
			t.Fatalf("%d lines: %q ... %q", len(lines), lines[0], lines[len(lines)-2])
		}
	}
}

func TestChanging(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, tool string
		args       m
		text, ask  string            // what the model and the user read
		after      map[string]string // what is in files then
	}{
		{name: "new_file", tool: "fs_write", args: m{"path": "n/e/w.txt", "contents": "x\ny"}, text: `{"output":"created n/e/w.txt (2 lines, 3 bytes)"}`, after: map[string]string{"n/e/w.txt": "x\ny"}},
		{name: "overwrite", tool: "fs_write", args: m{"path": "a.txt", "contents": "one\nTWO\n"}, text: `{"output":"replaced the contents of a.txt (2 lines, 8 bytes)"}`, ask: "Replace the contents of a.txt? 1 line added, 1 removed.\n\n    @@ -1,2 +1,2 @@\n     one\n    -two\n    +TWO", after: map[string]string{"a.txt": "one\nTWO\n"}},
		{name: "overwrite_with_the_same", tool: "fs_write", args: m{"path": "a.txt", "contents": "one\ntwo\n"}, text: `{"output":"replaced the contents of a.txt (2 lines, 8 bytes)"}`, after: map[string]string{"a.txt": "one\ntwo\n"}},
		{name: "overwrite_binary", tool: "fs_write", args: m{"path": "bin", "contents": "text\n"}, text: `{"output":"replaced the contents of bin (1 line, 5 bytes)"}`, ask: "Replace the contents of bin?\n\nIt holds 3 bytes of binary data; the new contents are these:\n\n    text"},
		{name: "hidden_characters_are_shown", tool: "fs_write", args: m{"path": "a.txt", "contents": "one\n\x1b[2Ktwo\n"}, text: `{"output":"replaced the contents of a.txt (2 lines, 12 bytes)"}`, ask: "Replace the contents of a.txt? 1 line added, 1 removed.\n\n    @@ -1,2 +1,2 @@\n     one\n    -two\n    +\\u001b[2Ktwo"},
		{name: "patch", tool: "fs_patch", args: m{"path": "a.txt", "contents": "@@ -2 +2,2 @@\n-two\n+2\n+3\n"}, text: `{"output":"changed a.txt: 2 lines added, 1 removed"}`, ask: "Change a.txt? 2 lines added, 1 removed.\n\n    @@ -1,2 +1,3 @@\n     one\n    -two\n    +2\n    +3", after: map[string]string{"a.txt": "one\n2\n3\n"}},
		{name: "patch_does_not_fit", tool: "fs_patch", args: m{"path": "a.txt", "contents": "@@ -2 +2 @@\n-2\n+3\n"}, text: `{"tool_call_error":"hunk 1 of 1 (@@ -2 +2 @@) does not fit, so nothing was changed: its first line \"2\" is not in the file. Read the file again and copy the lines exactly, blanks included"}`, after: map[string]string{"a.txt": "one\ntwo\n"}},
		{name: "patch_of_nothing", tool: "fs_patch", args: m{"path": "none", "contents": "@@ -0,0 +1 @@\n+x\n"}, text: `{"tool_call_error":"none: no such file or directory"}`},
		{name: "directory", tool: "fs_mkdir", args: m{"path": "x/y"}, text: `{"output":"created the directory x/y"}`},
		{name: "directory_that_is_there", tool: "fs_mkdir", args: m{"path": "sub"}, text: `{"output":"the directory sub exists already"}`},
		{name: "remove_file", tool: "fs_rm", args: m{"path": "a.txt"}, text: `{"output":"removed the file a.txt of 8 bytes"}`, ask: "Remove the file a.txt of 8 bytes?"},
		{name: "remove_directory", tool: "fs_rm", args: m{"path": "sub"}, text: `{"output":"removed the directory sub with 2 files and 1 directory"}`, ask: "Remove the directory sub with 2 files and 1 directory?"},
		{name: "remove_nothing", tool: "fs_rm", args: m{"path": "none"}, text: `{"tool_call_error":"none: no such file or directory"}`},
		{name: "remove_the_working_directory", tool: "fs_rm", args: m{"path": "."}, text: `{"tool_call_error":". is not removed: the working directory or the home directory is in it"}`},
		{name: "remove_what_is_above", tool: "fs_rm", args: m{"path": ".."}, text: `{"tool_call_error":".. is not removed: the working directory or the home directory is in it"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := files(t, map[string]string{"a.txt": "one\ntwo\n", "bin": "\x00\x01\x02", "sub/x": "1", "sub/y/z": "2"})
			text, _, question := asks(t, at(dir), tt.tool, tt.args)
			if text != tt.text || question != tt.ask {
				t.Errorf("got %s, asked %q; want %s, %q", text, question, tt.text, tt.ask)
			}
			for path, want := range tt.after {
				if got := read(t, filepath.Join(dir, filepath.FromSlash(path))); got != want {
					t.Errorf("%s holds %q, want %q", path, got, want)
				}
			}
			if left, _ := filepath.Glob(filepath.Join(dir, ".loki-*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestOutsideNeedsConsent(t *testing.T) {
	t.Parallel()
	dir, outside := files(t, nil), files(t, nil)
	target := filepath.Join(outside, "new")
	_, failed, question := asks(t, at(dir), "fs_write", m{"path": target, "contents": "x"})
	if want := "Make the file " + target + ", which is outside of the working directory?\n\n    x"; failed || question != want {
		t.Errorf("failed %v, asked %q, want %q", failed, question, want)
	}
	if read(t, target) != "x" {
		t.Error("nothing was written")
	}
	if _, _, question = asks(t, at(dir), "fs_mkdir", m{"path": filepath.Join(outside, "d")}); !strings.Contains(question, "outside") {
		t.Errorf("asked %q", question)
	}
}

func TestDiffIsCut(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{"a": strings.Repeat("x\n", 500)})
	_, _, question := asks(t, at(dir), "fs_write", m{"path": "a", "contents": strings.Repeat("y\n", 500)})
	if lines := strings.Count(question, "\n"); lines > 210 || !strings.HasSuffix(question, "[801 more lines are not shown]") {
		t.Errorf("%d lines: %s", lines, question[len(question)-60:])
	}
	dir = files(t, map[string]string{"a": strings.Repeat("x\n", 2<<20)})
	_, _, question = asks(t, at(dir), "fs_write", m{"path": "a", "contents": "y\n"})
	if !strings.Contains(question, "4194304 bytes, the new contents have 2.") {
		t.Errorf("asked %.300q", question)
	}
}

// Two calls of one reply: the second would overwrite what the user was not asked about.
func TestWhatWasHarmlessIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	dir := files(t, nil)
	set, err := tool.NewSet(named(t, at(dir), "fs_write"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "new")
	box := tool.NewBox(tool.Options{Tools: set, Judge: meddler(func() { write(t, file, "first") })})
	text, failed, err := box.Call(t.Context(), chat.ToolCall{Name: "fs_write", Arguments: `{"path":"new","contents":"second"}`}, steps.Steps{})
	if err != nil || !failed || !strings.Contains(text, "the target changed") {
		t.Errorf("got %s, %v", text, err)
	}
	if got := read(t, file); got != "first" {
		t.Errorf("the file holds %q", got)
	}
}

// Many calls that each change a line of one file: none is lost.
func TestConcurrentPatches(t *testing.T) {
	t.Parallel()
	const n = 32
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "line %d\n", i)
	}
	dir := files(t, map[string]string{"a": text.String()})
	locks := new(fsys.Locks)
	var wg sync.WaitGroup
	for i := range n {
		o := at(dir)
		o.Locks = locks // tools that are made apart
		set, err := tool.NewSet(builtin.Tools(o)...)
		if err != nil {
			t.Fatal(err)
		}
		args, _ := json.Marshal(m{"path": "a", "contents": fmt.Sprintf("@@ @@\n-line %d\n+LINE %d\n", i, i)})
		wg.Go(func() {
			box := tool.NewBox(tool.Options{Tools: set, AutoConfirm: true})
			if text, failed, err := box.Call(t.Context(), chat.ToolCall{Name: "fs_patch", Arguments: string(args)}, steps.Steps{}); failed || err != nil {
				t.Errorf("%s, %v", text, err)
			}
		})
	}
	wg.Wait()
	if got := read(t, filepath.Join(dir, "a")); got != strings.ToUpper(text.String()) {
		t.Errorf("changes were lost:\n%s", got)
	}
}
