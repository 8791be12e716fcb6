package tsdecl_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/base/process/npmtest"
	"loki/internal/base/text/sample"
	"loki/internal/tool/script/tsdecl"
)

// peerView is what TypeScript's own parser says about a source.
type peerView struct {
	Error     string
	Functions map[string]struct {
		Line   int
		Params [][3]any // name, whether it has a default, whether it has a question mark
		Odd    bool     // it has parameters that tools cannot have
	}
}

// askTypeScript returns what TypeScript's parser says about sources.
func askTypeScript(t *testing.T, modules string, sources []string) []peerView {
	t.Helper()
	in, err := json.Marshal(sources)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out.json") // node does not write much to a pipe at once
	f, err := os.Create(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd := exec.CommandContext(t.Context(), "node", "testdata/signatures.cjs")
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), f, os.Stderr
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	var views []peerView
	if err := json.Unmarshal(doc, &views); err != nil {
		t.Fatal(err)
	}
	return views
}

// published returns TypeScript sources of published packages.
func published(t *testing.T, modules string) (files, sources []string) {
	t.Helper()
	for _, dir := range []string{"rxjs/src", "zod/src", "typescript/lib"} {
		err := filepath.WalkDir(filepath.Join(modules, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".ts") {
				return err
			}
			src, err := os.ReadFile(path)
			if len(src) < 300_000 {
				files, sources = append(files, path), append(sources, string(src))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files, sources
}

// TestTypeScriptAgrees compares the exported functions of published packages, one by one,
// with what TypeScript's own parser finds.
func TestTypeScriptAgrees(t *testing.T) {
	if testing.Short() {
		t.Skip("starts node")
	}
	modules := npmtest.Install(t, "testdata/node")
	files, sources := published(t, modules)
	compared := 0
	for i, view := range askTypeScript(t, modules, sources) {
		if view.Error != "" {
			continue
		}
		src := []byte(sources[i])
		got, err := tsdecl.Parse(src, func(name string) bool { return !view.Functions[name].Odd })
		if err != nil {
			t.Errorf("%s: %v", files[i], err)
			continue
		}
		count := 0
		for name, want := range view.Functions {
			if !want.Odd {
				count++
			} else if _, err := tsdecl.Parse(src, func(n string) bool { return n == name }); err == nil {
				t.Errorf("%s: %s: no error for parameters that a tool cannot have", files[i], name)
			}
		}
		if len(got) != count {
			t.Errorf("%s: %d functions, want %d", files[i], len(got), count)
		}
		for _, f := range got {
			compared++
			want, ok := view.Functions[f.Name]
			same := ok && len(f.Params) == len(want.Params) && f.Line == want.Line
			for j := range min(len(f.Params), len(want.Params)) {
				p := f.Params[j]
				same = same && p.Name == want.Params[j][0] && p.Default == want.Params[j][1] && (p.Type.Optional || want.Params[j][2] == false)
			}
			if !same {
				t.Errorf("%s: got %+v, want %+v", files[i], f, want)
			}
		}
	}
	t.Logf("compared %d functions of %d files", compared, len(files))
	if compared < 300 {
		t.Errorf("only %d functions compared", compared)
	}
}

// TestBrokenSources damages a source by a character at a time. What TypeScript takes must
// be taken here, and of what it refuses most must be refused.
func TestBrokenSources(t *testing.T) {
	if testing.Short() {
		t.Skip("starts node")
	}
	modules := npmtest.Install(t, "testdata/node")
	src, err := os.ReadFile("testdata/broken.ts")
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
	for i, view := range askTypeScript(t, modules, append(sources, string(src)))[:len(sources)] {
		_, err := tsdecl.Parse([]byte(sources[i]), func(string) bool { return true })
		switch {
		case view.Error == "" && err != nil:
			t.Errorf("refused what TypeScript takes: %v\n%s", err, difference(string(src), sources[i]))
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
