// Package tools measures the native tools: what a call costs beside its work, and how
// searching compares with the programs that people know for it.
package tools

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/base/fault/steps"
	"loki/internal/llm/chat"
	"loki/internal/tool"
	"loki/internal/tool/builtin"
	"loki/internal/tool/builtin/grep"
	"loki/internal/tool/builtin/tree"
)

func box(b *testing.B, dir string) *tool.Box {
	b.Helper()
	set, err := tool.NewSet(builtin.Tools(builtin.Options{Dir: dir})...)
	if err != nil {
		b.Fatal(err)
	}
	return tool.NewBox(tool.Options{Tools: set, AutoConfirm: true})
}

// sources is a large tree: that of the Go that runs this.
func sources(b *testing.B) string {
	b.Helper()
	root, err := exec.CommandContext(b.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		b.Skip(err)
	}
	return filepath.Join(strings.TrimSpace(string(root)), "src")
}

func calls(b *testing.B, dir, name, args string) {
	b.Helper()
	x := box(b, dir)
	for b.Loop() {
		if text, failed, err := x.Call(b.Context(), chat.ToolCall{ID: "1", Name: name, Arguments: args}, steps.Steps{}); failed || err != nil {
			b.Fatal(text, err)
		}
	}
}

// BenchmarkMake is what it costs to have the tools.
func BenchmarkMake(b *testing.B) {
	for b.Loop() {
		builtin.Tools(builtin.Options{})
	}
}

// BenchmarkCall is a whole call, from the arguments' text to the model's text.
func BenchmarkCall(b *testing.B) {
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("one\ntwo\nthree\n"), 0o644); err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct{ name, args string }{
		{"get_current_time", `{}`},
		{"fs_cat", `{"path": "a.txt"}`},
		{"fs_read", `{"path": "a.txt", "offset": 2, "limit": 1}`},
		{"fs_ls", `{"path": "."}`},
		{"fs_grep", `{"pattern": "t\\w+e"}`},
		{"fs_patch", `{"path": "a.txt", "contents": "@@ @@\n two\n"}`},
		{"fs_write", `{"path": "b.txt", "contents": "one\ntwo\n"}`},
	} {
		b.Run(c.name, func(b *testing.B) { calls(b, dir, c.name, c.args) })
	}
}

// expressions are searched for in the sources of Go.
var expressions = []struct{ name, text string }{
	{"nothing", "zzzznotfound"},
	{"literal", `errors\.New\(`},
	{"any_case", "(?i)deadline ?exceeded"},
	{"class", "[A-Z]{6}_[0-9]+"},
	{"alternatives", "TODO|FIXME|XXX"},
	{"common", "func"},
}

// BenchmarkSearch finds all lines. With ripgrep and grep on PATH they do the same in the
// same run: "rg" keeps to ignore files as this search does.
func BenchmarkSearch(b *testing.B) {
	root := sources(b)
	for _, e := range expressions {
		b.Run("loki/"+e.name, func(b *testing.B) {
			lines := 0
			for b.Loop() {
				found, err := grep.Search(b.Context(), root, grep.Query{Expr: e.text, Tree: tree.Walker{SkipDir: func(name string) bool { return name == ".git" }}})
				if err != nil {
					b.Fatal(err)
				}
				lines = len(found.Lines)
			}
			b.ReportMetric(float64(lines), "lines")
		})
		for _, peer := range [][]string{{"rg", "-n", "--hidden", "--no-require-git", "-e"}, {"grep", "-rnP"}} {
			path, err := exec.LookPath(peer[0])
			if err != nil {
				continue
			}
			b.Run(peer[0]+"/"+e.name, func(b *testing.B) {
				for b.Loop() {
					c := exec.CommandContext(b.Context(), path, append(peer[1:], e.text, root)...)
					if err := c.Run(); err != nil && c.ProcessState.ExitCode() != 1 { // 1 is nothing found
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkGrepTool is the tool as a model calls it, which needs only the first 50 lines.
func BenchmarkGrepTool(b *testing.B) {
	root := sources(b)
	for _, e := range expressions {
		b.Run(e.name, func(b *testing.B) {
			args, err := json.Marshal(map[string]string{"pattern": e.text})
			if err != nil {
				b.Fatal(err)
			}
			calls(b, root, "fs_grep", string(args))
		})
	}
}

// BenchmarkGlobTool looks at each file of a large tree.
func BenchmarkGlobTool(b *testing.B) {
	calls(b, sources(b), "fs_glob", fmt.Sprintf(`{"pattern": %q}`, "**/*_test.go"))
}
