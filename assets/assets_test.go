package assets_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"loki/assets"
	"loki/internal/bundle"
	"loki/internal/graph"
	"loki/internal/graph/draw"
)

func TestBundledAgents(t *testing.T) {
	if got, want := bundle.Names(assets.Agents), []string{"coder", "digest"}; !slices.Equal(got, want) {
		t.Errorf("bundled agents: %q, want %q", got, want)
	}
}

// The embedded files are all files: a name that embedding leaves out, such as one
// with a dot in front, would be missing only in the installed agent.
func TestEverythingIsEmbedded(t *testing.T) {
	var onDisk, embedded []string
	list := func(fsys fs.FS, files *[]string) {
		err := fs.WalkDir(fsys, ".", func(file string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				*files = append(*files, file)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	list(os.DirFS("agents"), &onDisk)
	list(os.DirFS("roles"), &onDisk)
	list(assets.Agents, &embedded)
	list(assets.Roles, &embedded)
	if !slices.Equal(onDisk, embedded) {
		t.Errorf("embedded: %q\non disk: %q", embedded, onDisk)
	}
}

func TestGraphsAreValid(t *testing.T) {
	for _, name := range bundle.Names(assets.Agents) {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join("agents", name)
			g, warnings, err := graph.Load(filepath.Join(dir, graph.FileName))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range append(warnings, graph.Validate(g, graph.ValidateEnv{Dir: dir})...) {
				t.Errorf("%s %s: %v", f.Severity, f.Rule, f)
			}
			if g.Name != name {
				t.Errorf("the graph is called %q", g.Name)
			}
			for _, n := range g.Nodes {
				if n.Script == nil {
					continue
				}
				if _, err := fs.Stat(assets.Agents, path.Join(name, n.Script.Script)); err != nil {
					t.Errorf("node %s: %v", n.ID, err)
				}
			}
		})
	}
}

// The README of an agent shows its graph and explains its variables, with their defaults.
func TestReadmes(t *testing.T) {
	for _, name := range bundle.Names(assets.Agents) {
		t.Run(name, func(t *testing.T) {
			text, err := fs.ReadFile(assets.Agents, name+"/README.md")
			if err != nil {
				t.Fatal(err)
			}
			g, _, err := graph.Load(filepath.Join("agents", name, graph.FileName))
			if err != nil {
				t.Fatal(err)
			}
			checkDrawing(t, g, string(text))
			for _, v := range g.Variables {
				row := "| `" + v.Name + "` | " + *v.Default + " |"
				if !strings.Contains(string(text), row) {
					t.Errorf("no table row begins with %q", row)
				}
			}
		})
	}
}

// checkDrawing wants a drawing of the graph in a page: that of loki --graph, or a Mermaid
// diagram with all nodes.
func checkDrawing(t *testing.T, g *graph.Graph, page string) {
	t.Helper()
	diagram := regexp.MustCompile("(?s)```mermaid\n(.*?)```").FindStringSubmatch(page)
	if diagram == nil {
		if drawing := "```text\n" + draw.Text(g, 80) + "```\n"; !strings.Contains(page, drawing) {
			t.Errorf("the page lacks this drawing, see loki --graph %s:\n%s", g.Name, drawing)
		}
		return
	}
	for _, n := range g.Nodes {
		if !regexp.MustCompile(`\b` + regexp.QuoteMeta(n.ID) + `\b`).MatchString(diagram[1]) {
			t.Errorf("node %s is not in the diagram", n.ID)
		}
	}
}
