// Package internal_test guards the plan of the house: which package may import which,
// that each says what it is, and that the pages point to what exists.
package internal_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const root = ".."

// goPackage is a package of the module, by the path of its directory.
type goPackage struct {
	dir     string
	doc     bool
	tests   bool     // it has test files only
	imports []string // directories of this module that the code, without tests, imports
	others  []string // packages of others that it imports
}

// packages reads the module.
func packages(t *testing.T) map[string]*goPackage {
	t.Helper()
	found := make(map[string]*goPackage)
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(file, ".go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		dir = filepath.ToSlash(dir)
		p := found[dir]
		if p == nil {
			p = &goPackage{dir: dir, tests: true}
			found[dir] = p
		}
		p.add(f, strings.HasSuffix(file, "_test.go"))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func (p *goPackage) add(f *ast.File, test bool) {
	if f.Doc != nil && len(strings.TrimSpace(f.Doc.Text())) > 0 {
		p.doc = true
	}
	if test {
		return
	}
	p.tests = false
	for _, spec := range f.Imports {
		name, _ := strconv.Unquote(spec.Path.Value) // the parser has checked it
		if dir, ok := strings.CutPrefix(name, "loki/"); !ok {
			p.others = append(p.others, name)
		} else if !slices.Contains(p.imports, dir) {
			p.imports = append(p.imports, dir)
		}
	}
}

// below reports whether dir is one of the trees, or within one.
func below(dir string, trees ...string) bool {
	return slices.ContainsFunc(trees, func(tree string) bool { return dir == tree || strings.HasPrefix(dir, tree+"/") })
}

var (
	// vocabulary is what everyone shares. It knows nothing else.
	vocabulary = []string{
		"internal/value", "internal/fault", "internal/chat", "internal/event", "internal/steps",
		"internal/text", "internal/atomicfile", "internal/environ",
	}

	// faces translate between a user and the engine.
	faces = []string{"internal/cli", "internal/repl", "internal/server"}

	// outside is what reaches beyond the process.
	outside = []string{
		"internal/engine", "internal/provider", "internal/tool", "internal/process", "internal/ask", "internal/render",
		"internal/agent", "internal/config", "internal/app", "internal/run",
	}
)

// floor is how deep down a package is: faces, what they share, the composition root, what works, what it works
// with, and the vocabulary. Imports point down.
func floor(dir string) int {
	floors := [][]string{{"cmd", "bench"}, faces, {"internal/command", "internal/display"}, {"internal/app"}, {"internal/conversation", "internal/knowledge", "internal/trust", "internal/agent", "internal/run", "internal/node"}}
	for i, trees := range floors {
		if below(dir, trees...) {
			return i
		}
	}
	if below(dir, vocabulary...) {
		return len(floors) + 1
	}
	return len(floors)
}

func TestImportsPointDown(t *testing.T) {
	all := packages(t)
	for _, p := range all {
		if below(p.dir, "internal/graph") && slices.Contains(p.others, "os/exec") {
			t.Errorf("%s imports os/exec: scheduling a graph starts no processes", p.dir)
		}
		for _, imported := range p.imports {
			forbid := func(rule string) { t.Errorf("%s imports %s: %s", p.dir, imported, rule) }
			if floor(imported) < floor(p.dir) {
				forbid("imports point down")
			}
			if below(p.dir, vocabulary...) && !below(imported, vocabulary...) {
				forbid("the vocabulary knows only itself")
			}
			if below(imported, faces...) && below(p.dir, faces...) && !sameFace(p.dir, imported) {
				forbid("faces do not know each other")
			}
			if below(p.dir, "internal/graph") && below(imported, outside...) {
				forbid("a graph is data; what nodes do is handed to it")
			}
			if below(p.dir, "internal/provider") && below(imported, "internal/engine", "internal/graph", "internal/config", "internal/agent") {
				forbid("a provider knows the wire and nothing of us")
			}
			if below(p.dir, "internal/engine") && below(imported, "internal/graph", "internal/run", "internal/agent", "internal/config", "internal/render", "internal/ask") {
				forbid("the engine is below what uses it")
			}
			if below(p.dir, "internal/rag") && below(imported, "internal/graph", "internal/run", "internal/agent", "internal/config", "internal/render", "internal/ask", "internal/catalog") {
				forbid("a knowledge base knows neither agents nor the configuration")
			}
			if below(p.dir, "internal/rag/vector", "internal/rag/split") && !below(imported, vocabulary...) {
				forbid("what knowledge bases are made of knows the vocabulary only")
			}
			if below(p.dir, "internal/render") && below(imported, "internal/engine", "internal/provider", "internal/run", "internal/config") {
				forbid("what shows things sees events only")
			}
		}
	}
	// The rules above would hold for an empty tree: these must be there.
	for from, to := range map[string]string{
		"cmd/loki": "internal/cli", "internal/cli": "internal/display", "internal/display": "internal/app", "internal/app": "internal/conversation", "internal/conversation": "internal/engine",
		"internal/node": "internal/rag", "internal/rag": "internal/rag/split", "internal/graph": "internal/value", "internal/event": "internal/chat",
	} {
		if p := all[from]; p == nil || !slices.Contains(p.imports, to) {
			t.Errorf("%s does not import %s: is this test looking at the right tree?", from, to)
		}
	}
}

// sameFace reports whether both packages belong to the same face.
func sameFace(a, b string) bool {
	return slices.ContainsFunc(faces, func(face string) bool { return below(a, face) && below(b, face) })
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	all := packages(t)
	if len(all) < 20 {
		t.Fatalf("only %d packages found", len(all))
	}
	for _, p := range all {
		if !p.doc && !p.tests {
			t.Errorf("package %s has no doc comment", p.dir)
		}
	}
}

// pages returns the Markdown files of the project.
func pages(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return filepath.SkipDir
		case strings.HasSuffix(file, ".md"):
			files = append(files, file)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 5 {
		t.Fatalf("only %d pages found", len(files))
	}
	return files
}

var (
	fence   = regexp.MustCompile("(?ms)^\\s*```.*?^\\s*```[ \t]*$")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.+?)\s*$`)
	anchor  = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// TestLinks follows the relative links of all pages, down to the heading.
func TestLinks(t *testing.T) {
	followed := 0
	for _, page := range pages(t) {
		source, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllSubmatch(fence.ReplaceAll(source, nil), -1) {
			target := string(m[1])
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			followed++
			file, section, _ := strings.Cut(target, "#")
			dest := page
			if file != "" {
				dest = filepath.Join(filepath.Dir(page), filepath.FromSlash(file))
			}
			info, err := os.Stat(dest)
			if err != nil {
				t.Errorf("%s: link to %s: no such file", page, target)
				continue
			}
			if section != "" && !info.IsDir() && !slices.Contains(sections(t, dest), section) {
				t.Errorf("%s: link to %s: no such heading", page, target)
			}
		}
	}
	if followed < 10 {
		t.Errorf("only %d links found", followed)
	}
}

// sections returns the anchors of a page's headings, as web sites make them.
func sections(t *testing.T, page string) []string {
	t.Helper()
	source, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range heading.FindAllSubmatch(fence.ReplaceAll(source, nil), -1) {
		text := anchor.ReplaceAllString(strings.ToLower(string(m[1])), "")
		names = append(names, strings.ReplaceAll(text, " ", "-"))
	}
	return names
}

var sourcePath = regexp.MustCompile("`((?:internal|cmd|assets|bench|docs|examples)/[A-Za-z0-9_./-]+)`")

// TestPathsInPages looks for the files and directories that pages name in passing.
func TestPathsInPages(t *testing.T) {
	named := 0
	for _, page := range pages(t) {
		source, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range sourcePath.FindAllSubmatch(fence.ReplaceAll(source, nil), -1) {
			named++
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(string(m[1])))); err != nil {
				t.Errorf("%s names %s, which is not there", page, m[1])
			}
		}
	}
	if named == 0 {
		t.Error("no page names a path")
	}
}

// TestMakeTargets looks for the targets that pages tell people to make.
func TestMakeTargets(t *testing.T) {
	makefile, err := os.ReadFile(path.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile("(?m)(?:^|`)make ([a-z-]+)")
	for _, page := range pages(t) {
		source, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range command.FindAllSubmatch(source, -1) {
			if !bytes.Contains(makefile, append([]byte("\n"), append(m[1], ':')...)) {
				t.Errorf("%s: make %s: no such target", page, m[1])
			}
		}
	}
}
