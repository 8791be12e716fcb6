package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"loki/docs"
)

// TestPages: README.md lists each page once, in one of the four kinds.
func TestPages(t *testing.T) {
	files, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	var listed, kinds []string
	for _, p := range docs.Pages() {
		listed = append(listed, p.Name+".md")
		if !slices.Contains(kinds, p.Kind) {
			kinds = append(kinds, p.Kind)
		}
		if docs.Text(p.Name) == "" || len(p.Line) > 80 {
			t.Errorf("%s has no text, or a line of %d characters", p.Name, len(p.Line))
		}
	}
	if want := []string{"Begin here", "Guides", "Reference", "Why"}; !slices.Equal(kinds, want) {
		t.Errorf("the kinds are %q, want %q", kinds, want)
	}
	slices.Sort(listed)
	if files = slices.DeleteFunc(files, func(f string) bool { return f == "README.md" }); !slices.Equal(listed, files) {
		t.Errorf("README.md lists\n%q\nand there are\n%q", listed, files)
	}
}

func TestText(t *testing.T) {
	for name, want := range map[string]string{
		"graph": "# Graph agents\n", "graph.md": "# Graph agents\n", "docs/graph.md": "# Graph agents\n", "graph-running#retry": "## Retry\n",
		"graph-running.md#unhandled-failures": "### Unhandled failures\n", "nothing": "", "graph#nothing": "", "": "", "../go": "", "docs.go": "",
	} {
		got := docs.Text(name)
		if !strings.HasPrefix(got, want) || got != "" && want == "" {
			t.Errorf("%q begins with %.40q, want %q", name, got, want)
		}
	}
	if section := docs.Text("graph-running#retry"); strings.Contains(section, "## Timeouts") || !strings.Contains(section, "it worked at try 3") {
		t.Errorf("the section is\n%s", section)
	}
	if section := docs.Text("graph-running#failures"); !strings.Contains(section, "### Compensation") {
		t.Error("a section lacks those in it")
	}
}

func TestSections(t *testing.T) {
	found := make(map[string]bool)
	for _, s := range docs.Sections() {
		found[s.Page.Name+"#"+docs.Anchor(s.Heading)] = true
		if docs.Text(s.Page.Name+"#"+docs.Anchor(s.Heading)) == "" {
			t.Errorf("section %s of %s is not a section by its anchor", s.Heading, s.Page.Name)
		}
	}
	for _, want := range []string{"graph-running#retry", "sandbox#what-is-trusted", "cli#options"} {
		if !found[want] {
			t.Errorf("%s is missing", want)
		}
	}
}

// TestNamedPages looks for the pages and sections that hints and pages name.
func TestNamedPages(t *testing.T) {
	named := regexp.MustCompile(`loki --docs '?([a-z][a-z-]+(?:#[a-z0-9_-]+)?)`)
	found := 0
	for _, tree := range []string{"../internal", "../cmd", "../assets", "."} {
		err := filepath.WalkDir(tree, func(path string, d fs.DirEntry, err error) error {
			if ext := filepath.Ext(path); err != nil || d.IsDir() || ext != ".go" && ext != ".md" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range named.FindAllSubmatch(text, -1) {
				found++
				if docs.Text(string(m[1])) == "" {
					t.Errorf("%s names %s", path, m[0])
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < 4 {
		t.Errorf("only %d pages are named", found)
	}
}
