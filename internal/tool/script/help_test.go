package script_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/tool"
	"loki/internal/tool/script"
)

// home is a directory of functions with scripts of a test.
type home struct {
	dir string
	o   script.Options
}

func newHome(t *testing.T) home {
	t.Helper()
	dir := t.TempDir()
	h := home{dir: dir, o: script.Options{
		Cache:       filepath.Join(dir, "cache", "declarations"),
		Root:        dir,
		Bin:         filepath.Join(dir, "bin"),
		PromptUtils: filepath.Join(dir, "utils", "prompt-utils.sh"),
		Environ:     os.Environ(),
		Temp:        filepath.Join(dir, "temp"),
	}}
	for _, sub := range []string{"tools", "temp"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// put writes a tool and returns its path.
func (h home) put(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(h.dir, "tools", name)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// load returns the tools of a new script.
func (h home) load(t *testing.T, name, text string) []tool.Tool {
	t.Helper()
	tools, err := script.Load(h.put(t, name, text), h.o)
	if err != nil {
		t.Fatal(err)
	}
	return tools
}

// call calls a tool and makes sure that nothing of the call is left.
func (h home) call(t *testing.T, tl tool.Tool, arguments string) (tool.Result, error) {
	t.Helper()
	r, err := tl.Call(t.Context(), tool.Call{Name: tl.Declaration().Name, Arguments: []byte(arguments)})
	left, readErr := os.ReadDir(filepath.Join(h.dir, "temp"))
	if readErr != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, readErr)
	}
	return r, err
}

// want calls a tool, which has to succeed with an output.
func (h home) want(t *testing.T, tl tool.Tool, arguments, output string) {
	t.Helper()
	r, err := h.call(t, tl, arguments)
	if err != nil {
		t.Fatalf("%v\n%s", err, r.Stderr)
	}
	if r.Output != output {
		t.Errorf("got  %q\nwant %q", r.Output, output)
	}
}

func names(tools []tool.Tool) string {
	var list []string
	for _, tl := range tools {
		list = append(list, tl.Declaration().Name)
	}
	return strings.Join(list, " ")
}
