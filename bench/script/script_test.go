// Package script_test measures what a call of a script costs besides the script.
//
//	go test -bench . -benchtime 300x ./bench/script
package script_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"loki/internal/base/process"
	"loki/internal/tool"
	"loki/internal/tool/script"
	"loki/internal/tool/script/argc"
)

const (
	bashTool = `#!/usr/bin/env bash
# @describe Says hello.
# @option --name! Whom to greet
# @option --times <INT> How often
# @flag --loud
# @env LLM_OUTPUT=/dev/stdout
main() {
  echo "hello $argc_name" >>"$LLM_OUTPUT"
}
eval "$(loki --argc-eval "$0" "$@")"
`
	pythonTool = "def run(name: str):\n    '''Says hello.'''\n    return 'hello ' + name\n"
	arguments  = `{"name":"you"}`
)

// load returns the tool of a script, which lies in a fresh directory.
func load(b *testing.B, name, src string) (file string, t tool.Tool) {
	b.Helper()
	dir := b.TempDir()
	file = filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(src), 0o755); err != nil {
		b.Fatal(err)
	}
	tools, err := script.Load(file, script.Options{Root: dir, Environ: os.Environ()})
	if err != nil {
		b.Fatal(err)
	}
	return file, tools[0]
}

func call(b *testing.B, t tool.Tool) {
	b.Helper()
	r, err := t.Call(b.Context(), tool.Call{Name: "x", Arguments: []byte(arguments)})
	if err != nil || r.Output == "" {
		b.Fatalf("%+v, %v", r, err)
	}
}

// BenchmarkBash compares a call of a tool with running the same script by hand.
func BenchmarkBash(b *testing.B) {
	file, t := load(b, "hello.sh", bashTool)
	if _, err := argc.BuildFile(file, argc.Options{}); err != nil {
		b.Fatal(err)
	}
	b.Run("by_hand", func(b *testing.B) {
		output := filepath.Join(b.TempDir(), "output")
		for b.Loop() {
			cmd := exec.CommandContext(b.Context(), file, "--name=you")
			cmd.Env = append(os.Environ(), "LLM_OUTPUT="+output)
			if out, err := cmd.CombinedOutput(); err != nil {
				b.Fatalf("%s, %v", out, err)
			}
			if _, err := os.ReadFile(output); err != nil {
				b.Fatal(err)
			}
			os.Remove(output)
		}
	})
	b.Run("tool", func(b *testing.B) {
		for b.Loop() {
			call(b, t)
		}
	})
}

// BenchmarkPython does the same for a script in Python, where calling it by hand is a line
// of Python.
func BenchmarkPython(b *testing.B) {
	file, t := load(b, "hello.py", pythonTool)
	argv, err := process.Interpreter(".py", "", nil)
	if err != nil {
		b.Skip(err)
	}
	b.Run("by_hand", func(b *testing.B) {
		for b.Loop() {
			cmd := exec.CommandContext(b.Context(), argv[0], append(argv[1:], "-c", "import hello; print(hello.run('you'))")...)
			cmd.Dir = filepath.Dir(file)
			if out, err := cmd.CombinedOutput(); err != nil {
				b.Fatalf("%s, %v", out, err)
			}
		}
	})
	b.Run("tool", func(b *testing.B) {
		for b.Loop() {
			call(b, t)
		}
	})
}

// BenchmarkOverhead is a call whose script is the shortest program there is: what is left
// is what a call costs besides its script.
func BenchmarkOverhead(b *testing.B) {
	file, _ := load(b, "hello.sh", bashTool)
	short, err := exec.LookPath("true")
	if err != nil {
		b.Skip(err)
	}
	look := func(string) (string, error) { return short, nil }
	tools, err := script.Load(file, script.Options{Root: filepath.Dir(file), Environ: os.Environ(), Look: look})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("program_alone", func(b *testing.B) {
		for b.Loop() {
			if err := exec.CommandContext(b.Context(), short).Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("tool", func(b *testing.B) {
		for b.Loop() {
			if _, err := tools[0].Call(b.Context(), tool.Call{Name: "x", Arguments: []byte(arguments)}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkLoad loads twenty scripts, as a start does.
func BenchmarkLoad(b *testing.B) {
	dir := b.TempDir()
	var files []string
	for i := range 10 {
		for ext, src := range map[string]string{".sh": bashTool, ".py": pythonTool} {
			file := filepath.Join(dir, fmt.Sprintf("tool_%d%s", i, ext))
			if err := os.WriteFile(file, []byte(src), 0o755); err != nil {
				b.Fatal(err)
			}
			if ext == ".sh" {
				if _, err := argc.BuildFile(file, argc.Options{}); err != nil {
					b.Fatal(err)
				}
			}
			files = append(files, file)
		}
	}
	for _, bb := range []struct {
		name  string
		cache string
	}{{"parsed", ""}, {"cached", filepath.Join(dir, "cache")}} {
		b.Run(bb.name, func(b *testing.B) {
			for b.Loop() {
				for _, file := range files {
					if _, err := script.Load(file, script.Options{Cache: bb.cache}); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
	b.Run("names", func(b *testing.B) {
		for b.Loop() {
			for _, file := range files {
				if _, err := script.Names(file, script.Options{}); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}
