package internal_test

import (
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// roomLines bounds the lines of code of each directory below internal with all that is in it: without
// tests, packages for tests, comments and empty lines. A bound only falls: lower it with each change
// that deletes code. One that has to rise is explained by a page of docs/design.
var roomLines = map[string]int{
	"agent":        5986,
	"api":          579,
	"app":          6876,
	"argc":         2004,
	"ask":          2130,
	"atomicfile":   328,
	"audit":        346,
	"auth":         1145,
	"awake":        111,
	"batch":        366,
	"bundle":       1653,
	"cache":        41,
	"catalog":      1241,
	"chat":         466,
	"cli":          7356,
	"client":       578,
	"command":      2963,
	"completion":   609,
	"config":       2923,
	"conversation": 3768,
	"display":      536,
	"document":     5813,
	"draft":        679,
	"engine":       1280,
	"environ":      445,
	"event":        663,
	"fault":        114,
	"graph":        10663,
	"hook":         735,
	"input":        1345,
	"knowledge":    1236,
	"ledger":       120,
	"logging":      1123,
	"loopback":     17,
	"macro":        221,
	"mcp":          4748,
	"metrics":      309,
	"node":         2302,
	"oauth":        854,
	"pattern":      445,
	"permission":   2662,
	"postgres":     835,
	"process":      2214,
	"provider":     12705,
	"rag":          7484,
	"rank":         585,
	"redact":       715,
	"render":       7733,
	"repl":         3641,
	"repository":   295,
	"retry":        64,
	"role":         404,
	"run":          13200,
	"sample":       9,
	"sandbox":      5767,
	"schema":       2243,
	"search":       787,
	"server":       9481,
	"session":      5563,
	"setup":        784,
	"steps":        131,
	"telemetry":    1301,
	"text":         384,
	"token":        293,
	"tool":         10652,
	"trust":        418,
	"update":       679,
	"value":        698,
	"vault":        1046,
	"webhook":      731,
	"yamldoc":      1603,

	"all": 170179,
}

// slack is by how many lines a bound may be higher than what it bounds.
const slack = 150

// maxFields is how many fields a struct has at most. The ones of wideStructs have more, for now.
const maxFields = 40

// wideStructs bounds the fields of structs that are wider. These bounds only fall, too.
var wideStructs = map[string]int{"internal/app.App": 44, "internal/cli.options": 106, "internal/config.Config": 74, "internal/rag.work": 48}

// maxIdioms bounds how often the phrases of idioms occur in 10,000 words.
var maxIdioms = map[string]float64{"comments": 37, "messages": 30, "docs": 30}

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
		if room, ok := strings.CutPrefix(path, "internal/"); ok && strings.Contains(room, "/") {
			room, _, _ = strings.Cut(room, "/")
			lines[room] += codeLines(src)
			lines["all"] += codeLines(src)
		}
	})
	within(t, "internal/%s has %d lines of code", lines, roomLines, slack)
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
	within(t, "%s has %d fields", wide, wideStructs, 0)
}

// within fails for what is above its bound, or so far below that the bound has to be lowered.
func within(t *testing.T, what string, is, bounds map[string]int, slack int) {
	t.Helper()
	for name, n := range is {
		switch bound := bounds[name]; {
		case n > bound:
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
	words, found := make(map[string]int), make(map[string]int)
	add := func(kind, text string) {
		words[kind] += len(strings.Fields(text))
		found[kind] += len(idioms.FindAllString(text, -1))
	}
	goFiles(t, func(path string, src []byte) {
		f, err := parser.ParseFile(token.NewFileSet(), path, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range f.Comments {
			add("comments", c.Text())
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, _ := strconv.Unquote(lit.Value); strings.Contains(text, " ") {
					add("messages", text)
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
		add("docs", string(text))
	}
	for kind, bound := range maxIdioms {
		rate := float64(found[kind]) * 10000 / float64(max(words[kind], 1))
		t.Logf("%s: %d in %d words, %.1f in 10,000", kind, found[kind], words[kind], rate)
		if rate > bound || rate < bound-2 {
			t.Errorf("%s have %.1f phrases of the list in 10,000 words, the bound is %.1f: see CONTRIBUTING.md", kind, rate, bound)
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
