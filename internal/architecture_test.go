// Package internal_test guards the plan of the house: which package may import which,
// that each says what it is, and that the pages point to what exists.
package internal_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/scanner"
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
	// wings are the directories of internal. A wing imports itself and what is listed after it.
	wings = []string{"frontend", "app", "conversation", "agent", "setup", "knowledge", "workflow", "service", "tool", "llm", "base"}

	// vocabulary is what everyone shares. It knows nothing else.
	vocabulary = []string{
		"internal/base/value", "internal/base/fault", "internal/llm/chat", "internal/llm/event", "internal/base/fault/steps",
		"internal/base/text", "internal/base/file/atomicfile", "internal/base/process/environ",
	}

	// faces translate between a user and the engine.
	faces = []string{"internal/frontend/cli", "internal/frontend/repl", "internal/frontend/server"}

	// outside is what reaches beyond the process.
	outside = []string{
		"internal/llm/engine", "internal/llm/provider", "internal/tool", "internal/base/process", "internal/base/ask", "internal/frontend",
		"internal/agent", "internal/setup/config", "internal/app", "internal/workflow/run",
	}
)

// wing returns the position of a package's wing in wings: -1 for commands and benchmarks, which are above all, and
// after all wings for the files of assets and docs.
func wing(dir string) int {
	if below(dir, "assets", "docs") {
		return len(wings)
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(dir, "internal/"), "/")
	return slices.Index(wings, name)
}

func TestImportsPointDown(t *testing.T) {
	all := packages(t)
	for _, p := range all {
		if below(p.dir, "internal/workflow/graph") && slices.Contains(p.others, "os/exec") {
			t.Errorf("%s imports os/exec: scheduling a graph starts no processes", p.dir)
		}
		for _, imported := range p.imports {
			forbid := func(rule string) { t.Errorf("%s imports %s: %s", p.dir, imported, rule) }
			if wing(imported) < wing(p.dir) {
				forbid("imports point down, in the order of wings")
			}
			if below(p.dir, vocabulary...) && !below(imported, vocabulary...) {
				forbid("the vocabulary knows only itself")
			}
			if below(imported, faces...) && below(p.dir, faces...) && !sameFace(p.dir, imported) {
				forbid("faces do not know each other")
			}
			if below(p.dir, "internal/workflow/graph") && below(imported, outside...) && !below(imported, "internal/base/process/environ", "internal/base/process/sandbox") {
				forbid("a graph is data; what nodes do is handed to it")
			}
			if below(p.dir, "internal/llm/provider") && below(imported, "internal/llm/engine", "internal/workflow/graph", "internal/setup/config", "internal/agent") {
				forbid("a provider knows the wire and nothing of us")
			}
			if below(p.dir, "internal/llm/engine") && below(imported, "internal/workflow/graph", "internal/workflow/run", "internal/agent", "internal/setup/config", "internal/frontend/render", "internal/base/ask") {
				forbid("the engine is below what uses it")
			}
			if below(p.dir, "internal/knowledge/rag") && below(imported, "internal/workflow/graph", "internal/workflow/run", "internal/agent", "internal/setup/config", "internal/frontend/render", "internal/base/ask", "internal/llm/catalog") {
				forbid("a knowledge base knows neither agents nor the configuration")
			}
			if below(p.dir, "internal/knowledge/rag/vector", "internal/knowledge/rag/split") && !below(imported, vocabulary...) {
				forbid("what knowledge bases are made of knows the vocabulary only")
			}
			if below(p.dir, "internal/frontend/render") && below(imported, "internal/llm/engine", "internal/llm/provider", "internal/workflow/run", "internal/setup/config") {
				forbid("what shows things sees events only")
			}
		}
	}
	// The rules above would hold for an empty tree: these must be there.
	for from, to := range map[string]string{
		"cmd/loki": "internal/frontend/cli", "internal/frontend/cli": "internal/frontend/command/display", "internal/frontend/command/display": "internal/app", "internal/app": "internal/conversation", "internal/conversation": "internal/llm/engine",
		"internal/agent/node": "internal/knowledge/rag", "internal/knowledge/rag": "internal/knowledge/rag/split", "internal/workflow/graph": "internal/base/value", "internal/llm/event": "internal/llm/chat",
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

// roomPath is a package of internal as pages write it for short.
var roomPath = regexp.MustCompile("`((?:frontend|conversation|agent|setup|knowledge|workflow|service|tool|llm|base)/[a-z][A-Za-z0-9_./-]*)`")

// TestPathsInPages looks for the files and directories that pages name in passing.
func TestPathsInPages(t *testing.T) {
	named := 0
	for _, page := range pages(t) {
		source, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for below, paths := range map[string]*regexp.Regexp{root: sourcePath, ".": roomPath} {
			for _, m := range paths.FindAllSubmatch(fence.ReplaceAll(source, nil), -1) {
				named++
				if _, err := os.Stat(filepath.Join(below, filepath.FromSlash(string(m[1])))); err != nil {
					t.Errorf("%s names %s, which is not there", page, m[1])
				}
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

// roomLines bounds the lines of code of each room: a directory of a wing with all that is in it, or the files of the wing itself.
// Tests, packages for tests, comments and empty lines do not count. A bound only falls: lower it with each change
// that deletes code. One that has to rise is explained by a page of docs/design.
var roomLines = map[string]int{
	"agent":                  1346,
	"agent/bundle":           1630,
	"agent/cases":            2763,
	"agent/harness":          3298,
	"agent/memory":           1370,
	"agent/node":             2215,
	"agent/role":             619,
	"agent/team":             3645,
	"agent/validate":         2014,
	"agent/workspace":        4625,
	"app":                    2599,
	"base/ask":               2190,
	"base/document":          5729,
	"base/fault":             313,
	"base/file":              2478,
	"base/process":           8937,
	"base/text":              1508,
	"base/value":             4451,
	"base/web":               300,
	"conversation":           5233,
	"conversation/knowledge": 1319,
	"conversation/launch":    1118,
	"conversation/session":   7083,
	"frontend/api":           1847,
	"frontend/cli":           9749,
	"frontend/command":       6367,
	"frontend/render":        7426,
	"frontend/repl":          4030,
	"frontend/server":        14861,
	"knowledge/input":        1344,
	"knowledge/rag":          7330,
	"llm/catalog":            1232,
	"llm/chat":               572,
	"llm/engine":             3141,
	"llm/event":              4684,
	"llm/hook":               722,
	"llm/provider":           12665,
	"service/auth":           1498,
	"service/postgres":       917,
	"setup":                  1062,
	"setup/clients":          597,
	"setup/config":           3499,
	"tool":                   2099,
	"tool/builtin":           5511,
	"tool/mcp":               6800,
	"tool/permission":        2788,
	"tool/script":            5356,
	"workflow/graph":         10680,
	"workflow/run":           16914,
	"workflow/schedule":      2379,

	"all": 202853,
}

// slack is by how many lines a bound may be higher than what it bounds, leeway by how many lower: a fix needs no new bound.
const slack, leeway = 150, 20

// maxFields is how many fields a struct has at most. The ones of wideStructs have more, for now.
const maxFields = 40

// wideStructs bounds the fields of structs that are wider. These bounds only fall, too.
var wideStructs = map[string]int{"internal/frontend/cli.options": 77, "internal/setup/config.Config": 71, "internal/knowledge/rag.work": 42}

// maxIdioms bounds how often the phrases of idioms occur in 10,000 words.
var maxIdioms = map[string]float64{"comments": 3, "messages": 4, "docs": 1}

// idioms are phrases that have to be read twice. CONTRIBUTING.md has what to write instead.
var idioms = regexp.MustCompile(`(?i)\b(go(es)? on|going on|went on|gone on|put aside|stands? (for|behind|in)|what came of|what becomes of|(is|are) told|those that|of those|none of them|is none of|nobody|whoever|people who|mended|made again|held back|kept apart|behind the text|once more|has to be|is to be)\b`)

// goFiles calls f with the product's files of Go below internal and cmd.
func goFiles(t *testing.T, f func(path string, src []byte)) {
	t.Helper()
	for _, tree := range []string{"internal", "cmd"} {
		err := filepath.WalkDir(filepath.Join(root, tree), func(path string, d fs.DirEntry, err error) error {
			name := filepath.ToSlash(path)
			switch {
			case err != nil:
				return err
			case d.IsDir() && (d.Name() == "testdata" || strings.HasSuffix(d.Name(), "test")):
				return filepath.SkipDir
			case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
				return nil
			}
			src, err := os.ReadFile(path)
			if err == nil {
				f(strings.TrimPrefix(name, root+"/"), src)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestPageNamesEveryRoom looks for the rooms and wings in the table of architecture.md.
func TestPageNamesEveryRoom(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	for room := range roomLines {
		if room != "all" && !bytes.Contains(page, []byte("`"+path.Base(room)+"`")) {
			t.Errorf("docs/architecture.md does not name the room %s", room)
		}
	}
}

// codeLines returns how many lines have code.
func codeLines(src []byte) int {
	files := token.NewFileSet()
	file := files.AddFile("", -1, len(src))
	var s scanner.Scanner
	s.Init(file, src, nil, 0)
	lines := make(map[int]bool)
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			return len(lines)
		}
		if tok == token.SEMICOLON && text == "\n" {
			continue
		}
		for at, n := file.Line(pos), strings.Count(text, "\n"); n >= 0; n-- {
			lines[at+n] = true
		}
	}
}

func TestRoomsDoNotGrow(t *testing.T) {
	t.Parallel()
	lines := make(map[string]int)
	goFiles(t, func(path string, src []byte) {
		if parts := strings.Split(strings.TrimPrefix(path, "internal/"), "/"); len(parts) > 1 && strings.HasPrefix(path, "internal/") {
			lines[strings.Join(parts[:min(2, len(parts)-1)], "/")] += codeLines(src)
			lines["all"] += codeLines(src)
		}
	})
	within(t, "internal/%s has %d lines of code", lines, roomLines, leeway, slack)
}

// TestExpressionsCompileLate finds regular expressions that each start of the program would compile.
func TestExpressionsCompileLate(t *testing.T) {
	t.Parallel()
	early := regexp.MustCompile(`(?m)^(?:var |\t)\w+ += regexp\.MustCompile\(`)
	goFiles(t, func(path string, src []byte) {
		if m := early.Find(src); m != nil {
			t.Errorf("%s: %s: use text.Regexp", path, m)
		}
	})
}

// maxParticiples bounds how many functions have a bare participle as their name. A predicate, which returns a bool alone, may have one.
const maxParticiples = 41

var (
	participle = regexp.MustCompile(`^(?i)([a-z]+(ed|ing)|made|held|shown|begun|known|kept|taken|given|done|found|built|sent|left|lost|told|drawn|written|chosen|hidden|seen|bound|spent|meant)$`)
	notOne     = regexp.MustCompile(`^(?i)(string|need|feed|embed|proceed|bring|anything|nothing|ring|mapping|heading|setting|meaning|embedding|encoding|timing|seed|red|thing|padding|framing|spelling|wording|sampling|drawing|ending|warning|killing|reasoning|thinking|beginning|finding|exceed|succeed)$`)
	compound   = regexp.MustCompile(`.[A-Z]`)
)

// TestFunctionsAreVerbs: the name of a function says what it does or what it returns.
func TestFunctionsAreVerbs(t *testing.T) {
	var found []string
	goFiles(t, func(name string, src []byte) {
		f, err := parser.ParseFile(token.NewFileSet(), name, src, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || compound.MatchString(fn.Name.Name) || !participle.MatchString(fn.Name.Name) || notOne.MatchString(fn.Name.Name) {
				continue
			}
			if r := fn.Type.Results; r.NumFields() == 1 {
				if id, ok := r.List[0].Type.(*ast.Ident); ok && id.Name == "bool" {
					continue
				}
			}
			found = append(found, name+": "+fn.Name.Name)
		}
	})
	if len(found) > maxParticiples {
		t.Errorf("%d functions are named by a bare participle, want at most %d; name a new one by a verb or by what it returns:\n%s", len(found), maxParticiples, strings.Join(found, "\n"))
	}
}

func TestStructsAreNarrow(t *testing.T) {
	t.Parallel()
	wide := make(map[string]int)
	goFiles(t, func(path string, src []byte) {
		f, err := parser.ParseFile(token.NewFileSet(), path, src, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, _ := n.(*ast.TypeSpec)
			if spec == nil {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				fields := 0
				for _, field := range s.Fields.List {
					fields += max(1, len(field.Names))
				}
				if fields > maxFields {
					wide[filepath.ToSlash(filepath.Dir(path))+"."+spec.Name.Name] = fields
				}
			}
			return true
		})
	})
	within(t, "%s has %d fields", wide, wideStructs, 0, 0)
}

// within fails for what is above its bound, or so far below that the bound has to be lowered.
func within(t *testing.T, what string, is, bounds map[string]int, leeway, slack int) {
	t.Helper()
	for name, n := range is {
		switch bound := bounds[name]; {
		case n > bound+leeway:
			t.Errorf(what+", its bound is %d", name, n, bound)
		case n < bound-slack:
			t.Errorf(what+": lower its bound from %d", name, n, bound)
		}
	}
	for name, bound := range bounds {
		if is[name] == 0 {
			t.Errorf("%s is gone: remove its bound of %d", name, bound)
		}
	}
}

func TestWordsArePlain(t *testing.T) {
	t.Parallel()
	words, found := make(map[string]int), make(map[string][]string)
	add := func(kind, file, text string) {
		words[kind] += len(strings.Fields(text))
		for _, phrase := range idioms.FindAllString(text, -1) {
			found[kind] = append(found[kind], file+": "+phrase)
		}
	}
	goFiles(t, func(path string, src []byte) {
		f, err := parser.ParseFile(token.NewFileSet(), path, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range f.Comments {
			add("comments", path, c.Text())
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, _ := strconv.Unquote(lit.Value); strings.Contains(text, " ") {
					add("messages", path, text)
				}
			}
			return true
		})
	})
	for _, file := range pages(t) {
		if strings.HasSuffix(file, "CONTRIBUTING.md") { // which lists them
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		add("docs", file, string(text))
	}
	for kind, bound := range maxIdioms {
		rate := float64(len(found[kind])) * 10000 / float64(max(words[kind], 1))
		t.Logf("%s: %d in %d words, %.1f in 10,000", kind, len(found[kind]), words[kind], rate)
		if rate > bound || rate < bound-2 {
			t.Errorf("%s have %.1f phrases of the list in 10,000 words, the bound is %.1f: see CONTRIBUTING.md\n%s", kind, rate, bound, strings.Join(found[kind], "\n"))
		}
	}
}

// TestCodeLines: the guard counts what it says.
func TestCodeLines(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]int{
		"package x\n": 1,
		"// doc\n\npackage x // why\n\nvar a = `one\ntwo`\n\n/* a\nb */ const c = 1\n": 4,
	} {
		if got := codeLines([]byte(src)); got != want {
			t.Errorf("%q has %d lines of code, want %d", src, got, want)
		}
	}
	if !slices.Equal(idioms.FindAllString("It goes on, as nobody is told.", -1), []string{"goes on", "nobody", "is told"}) {
		t.Error("idioms are not found")
	}
}
