package pydecl_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"loki/internal/process"
	"loki/internal/sample"
	"loki/internal/tool/pydecl"
)

// pythonView is what Python's own parser says about a source.
type pythonView struct {
	Error     string
	Functions map[string]struct {
		Line   int
		Params [][2]any // name, whether it has a default
		Odd    bool     // it has parameters that tools cannot have
		Doc    bool
	}
}

// askPython returns what Python's parser says about sources.
func askPython(t *testing.T, sources []string) []pythonView {
	t.Helper()
	argv := interpreter(t)
	in, err := json.Marshal(sources)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), argv[0], append(argv[1:], "testdata/signatures.py")...)
	cmd.Stdin = bytes.NewReader(in)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var views []pythonView
	if err := json.Unmarshal(out, &views); err != nil {
		t.Fatal(err)
	}
	return views
}

func interpreter(t *testing.T) []string {
	t.Helper()
	argv, err := process.Interpreter(".py", "", nil)
	if err != nil {
		t.Skip(err)
	}
	return argv
}

// library returns sources of Python's standard library: a third of them, or all with LOKI_TEST=full.
func library(t *testing.T) (files, sources []string) {
	t.Helper()
	argv := interpreter(t)
	out, err := exec.CommandContext(t.Context(), argv[0], append(argv[1:], "-c", "import os; print(os.path.dirname(os.__file__))")...).Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := strings.TrimSpace(string(out))
	for _, pattern := range []string{"*.py", "asyncio/*.py", "json/*.py", "email/*.py", "test/test_[a-f]*.py"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for i, file := range found {
			if i%sample.Step(3) != 0 {
				continue
			}
			src, err := os.ReadFile(file)
			if err != nil || !utf8.Valid(src) {
				continue
			}
			files, sources = append(files, file), append(sources, string(src))
		}
	}
	if len(files) < 100 {
		t.Skipf("only %d sources below %s", len(files), dir)
	}
	return files, sources
}

// TestPythonAgrees compares the functions of Python's standard library, one by one, with
// what Python's own parser finds.
func TestPythonAgrees(t *testing.T) {
	if testing.Short() {
		t.Skip("reads the standard library of Python")
	}
	files, sources := library(t)
	compared := 0
	for i, view := range askPython(t, sources) {
		if view.Error != "" {
			continue
		}
		src := []byte(sources[i])
		got, err := pydecl.Parse(src, func(name string) bool { return !view.Functions[name].Odd })
		if err != nil {
			t.Errorf("%s: %v", files[i], err)
			continue
		}
		count := 0
		for name, want := range view.Functions {
			if !want.Odd {
				count++
			} else if _, err := pydecl.Parse(src, func(n string) bool { return n == name }); err == nil {
				t.Errorf("%s: %s: no error for parameters that a tool cannot have", files[i], name)
			}
		}
		if len(got) != count {
			t.Errorf("%s: %d functions, want %d", files[i], len(got), count)
		}
		for _, f := range got {
			compared++
			want := view.Functions[f.Name]
			same := len(f.Params) == len(want.Params) && f.Line == want.Line && (f.Description != "") == want.Doc
			for j := range min(len(f.Params), len(want.Params)) {
				same = same && f.Params[j].Name == want.Params[j][0] && f.Params[j].Default == want.Params[j][1]
			}
			if !same {
				t.Errorf("%s: got %+v, want %+v", files[i], f, want)
			}
		}
	}
	t.Logf("compared %d functions of %d files", compared, len(files))
	if compared < 500 {
		t.Errorf("only %d functions compared", compared)
	}
}

// TestBrokenSources damages sources by a character at a time. What Python takes must be
// taken here, and of what it refuses most must be refused.
func TestBrokenSources(t *testing.T) {
	if testing.Short() {
		t.Skip("starts Python")
	}
	src, err := os.ReadFile("testdata/broken.py")
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	var sources []string
	for range 3000 / sample.Step(4) {
		i := random.IntN(len(src) - 1)
		switch random.IntN(3) {
		case 0: // lose one
			sources = append(sources, string(src[:i])+string(src[i+1:]))
		case 1: // repeat one
			sources = append(sources, string(src[:i+1])+string(src[i:]))
		default: // swap two
			sources = append(sources, string(src[:i])+string(src[i+1])+string(src[i])+string(src[i+2:]))
		}
	}
	refused, found := 0, 0
	for i, view := range askPython(t, sources) {
		_, err := pydecl.Parse([]byte(sources[i]), func(string) bool { return false })
		switch {
		case view.Error == "" && err != nil:
			t.Errorf("refused what Python takes: %v\n%s", err, difference(string(src), sources[i]))
		case view.Error != "":
			refused++
			if err != nil {
				found++
			}
		}
	}
	t.Logf("found %d of %d mistakes", found, refused)
	if found*10 < refused*7 {
		t.Errorf("found %d of %d mistakes", found, refused)
	}
}

// difference returns the first line that differs.
func difference(a, b string) string {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range bs {
		if i >= len(as) || as[i] != bs[i] {
			return bs[i]
		}
	}
	return ""
}
