package assets_test

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"loki/assets"
	"loki/internal/agent"
	"loki/internal/agent/bundle"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/graph/draw"
)

func TestBundledAgents(t *testing.T) {
	if got, want := bundle.Names(assets.Agents), []string{
		"code-reviewer", "coder", "deep-research", "demo", "digest", "explore", "file-reviewer", "oracle", "planner", "report-writer", "sisyphus", "sql",
	}; !slices.Equal(got, want) {
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

// The tools are as they were written: a call puts code into a script that lies where it is called.
func TestToolsAreSources(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("agents", "*", "tools.sh"))
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if text, err := os.ReadFile(file); err != nil || strings.Contains(string(text), "ARGC-BUILD") || !strings.HasSuffix(string(text), "\neval \"$(loki --argc-eval \"$0\" \"$@\")\"\n") {
			t.Errorf("%s holds generated code, or does not end in eval: %v", file, err)
		}
	}
}

func TestGraphsAreValid(t *testing.T) {
	for _, name := range bundle.Names(assets.Agents) {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join("agents", name)
			g := load(t, name).graph
			if g == nil {
				t.Skip("a plain agent")
			}
			for _, f := range graph.Validate(g, graph.ValidateEnv{Dir: dir}) {
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

// definition is what an agent says of itself.
type definition struct {
	*agent.Definition
	graph *graph.Graph // nil for a plain agent
}

// load reads the definition of a bundled agent, which has to be without findings.
func load(t *testing.T, name string) definition {
	t.Helper()
	dir := filepath.Join("agents", name)
	if g, findings, err := graph.Load(filepath.Join(dir, graph.FileName)); !errors.Is(err, fs.ErrNotExist) {
		if err != nil || len(findings) > 0 {
			t.Fatal(err, findings)
		}
		return definition{agent.FromGraph(name, g), g}
	}
	file := filepath.Join(dir, "config.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	d, findings, err := agent.Parse(file, text)
	if err != nil || len(findings) > 0 {
		t.Fatal(err, findings)
	}
	return definition{Definition: d}
}

// Each agent says what it is for and how to begin, names no model, and has a README that shows its
// graph and explains its variables, with their defaults.
func TestDefinitions(t *testing.T) {
	for _, name := range bundle.Names(assets.Agents) {
		t.Run(name, func(t *testing.T) {
			d := load(t, name)
			if d.Description == "" || len(d.Starters) == 0 {
				t.Error("it has no description or no conversation starters")
			}
			if d.Model != "" {
				t.Errorf("it names the model %s", d.Model)
			}
			if d.graph == nil && !strings.EqualFold(d.Name, name) {
				t.Errorf("it is called %q", d.Name)
			}
			text, err := fs.ReadFile(assets.Agents, name+"/README.md")
			if err != nil {
				t.Fatal(err)
			}
			page := string(text)
			if !strings.HasPrefix(page, "# "+name+"\n") || !strings.Contains(page, "loki -a "+name+" ") {
				t.Error("the README does not begin with its name, or does not show how to run it")
			}
			if d.graph != nil {
				checkDrawing(t, d.graph, page)
			}
			for _, v := range d.Variables {
				value := "none, required"
				if v.Default != nil {
					value = cmp.Or(*v.Default, "empty")
				}
				row := "| `" + v.Name + "` | " + value + " |"
				if !strings.Contains(page, row) {
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
		if drawing := "```text\n" + draw.Text(g, 80, draw.DefaultDepth) + "```\n"; !strings.Contains(page, drawing) {
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
