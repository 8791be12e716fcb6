package draw

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"loki/internal/base/process/npmtest"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/graph/draw/layered"
)

// pastStates are those of a run of graphs()["types"] that waits for an answer.
var pastStates = map[string]State{
	"question": Done, "research": Done, "passages": Failed, "each": Done, "grade": Done, "tidy": Done,
	"answer": Running, "approve": Waiting, "sorry": Skipped,
}

func TestSVGGolden(t *testing.T) {
	for name, o := range map[string]SVGOptions{
		"types":       {Standalone: true, States: pastStates},
		"cycle":       {},
		"choices":     {Standalone: true},
		"names":       {},
		"unreachable": {Standalone: true},
		"subgraphs":   {Standalone: true, Depth: 2},
	} {
		t.Run(name, func(t *testing.T) {
			got := SVG(graphs()[name], o)
			file := filepath.Join("testdata", name+".svg")
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s differs, which -update rewrites; look at the picture before you keep it", file)
			}
		})
	}
}

// picked are the parts of an SVG that tests look at.
type picked struct {
	texts    []string
	nodes    []string // data-node
	classes  map[string]string
	edges    []string // from, class, to
	elements map[string]bool
}

// pick fails if svg is not well formed, or has something that a page with strict rules refuses.
func pick(t *testing.T, svg []byte, standalone bool) picked {
	t.Helper()
	p := picked{elements: map[string]bool{}, classes: map[string]string{}}
	d := xml.NewDecoder(bytes.NewReader(svg))
	element := ""
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return p
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
		switch token := token.(type) {
		case xml.StartElement:
			element = token.Name.Local
			p.elements[element] = true
			attrs := map[string]string{}
			for _, a := range token.Attr {
				name := a.Name.Local
				attrs[name] = a.Value
				if name == "style" || name == "id" || name == "href" || strings.HasPrefix(name, "on") {
					t.Errorf("there is an attribute %s=%q", name, a.Value)
				}
			}
			if node, ok := attrs["data-node"]; ok {
				p.nodes = append(p.nodes, node)
				p.classes[node] = attrs["class"]
			}
			if to, ok := attrs["data-to"]; ok {
				p.edges = append(p.edges, fmt.Sprintf("%s %s %s", attrs["data-from"], strings.TrimPrefix(attrs["class"], "edge "), to))
			}
		case xml.CharData:
			if element == "text" {
				p.texts = append(p.texts, string(token))
			}
		case xml.EndElement:
			element = ""
		case xml.Comment, xml.Directive, xml.ProcInst:
			t.Errorf("there is %T", token)
		}
		for name := range p.elements {
			if !slices.Contains([]string{"svg", "g", "path", "rect", "circle", "text", "title"}, name) && (name != "style" || !standalone) {
				t.Errorf("there is an element %s", name)
			}
		}
	}
}

func TestSVGIsComplete(t *testing.T) {
	for name, g := range graphs() {
		t.Run(name, func(t *testing.T) {
			for _, standalone := range []bool{false, true} {
				got := pick(t, SVG(g, SVGOptions{Standalone: standalone, Depth: 2}), standalone)
				nodes := drawn(newPicture(g, 2))
				edges := 1 // to the start
				for _, n := range nodes {
					if n.inside != nil {
						edges++
					}
					edges += len(n.out)
					if !slices.Contains(got.nodes, xmlChars(n.id)) {
						t.Errorf("node %q is not in the picture", n.id)
					}
				}
				if len(got.nodes) != len(nodes) || len(got.edges) != edges {
					t.Errorf("%d nodes and %d edges, want %d and %d", len(got.nodes), len(got.edges), len(nodes), edges)
				}
				if got.elements["style"] != standalone {
					t.Errorf("style: %v", got.elements["style"])
				}
			}
		})
	}
}

// xmlChars returns s without the characters that XML cannot hold.
func xmlChars(s string) string {
	var out struct {
		Text string `xml:",chardata"`
	}
	if err := xml.Unmarshal([]byte("<a>"+xmlText(s)+"</a>"), &out); err != nil {
		panic(err)
	}
	return out.Text
}

func TestSVGStates(t *testing.T) {
	taken := map[string]bool{"question.next": true, "passages.next": true, "each.branch": true}
	got := pick(t, SVG(graphs()["types"], SVGOptions{States: pastStates, Taken: taken}), false)
	for id, state := range pastStates {
		if class := strings.Fields(got.classes[id]); !slices.Contains(class, string(state)) {
			t.Errorf("the node %s has the classes %q, not %s", id, class, state)
		}
	}
	want := []string{" next taken question", "question next taken research", "passages next taken each", "each branch taken grade"}
	found := slices.DeleteFunc(slices.Clone(got.edges), func(edge string) bool { return !strings.Contains(edge, " taken ") })
	slices.Sort(found)
	slices.Sort(want)
	if !slices.Equal(found, want) {
		t.Errorf("the edges %q are taken, want %q", found, want)
	}
	// States differ also without color: each has its badge.
	for _, s := range states {
		one := string(SVG(graphOf("one", end("only")), SVGOptions{Standalone: true, States: map[string]State{"only": s.state}}))
		if !strings.Contains(one, s.path) || strings.Count(one, `class="badge"`) != 1 {
			t.Errorf("%s has no badge of its own", s.state)
		}
	}
	if strings.Contains(string(SVG(graphs()["types"], SVGOptions{Standalone: true})), `class="badge"`) {
		t.Error("a picture without a run has badges")
	}
}

func TestStyleNamesColors(t *testing.T) {
	used := strings.Count(rules, "var(--graph-")
	if used == 0 || strings.Contains(standaloneStyle(), "var(") {
		t.Errorf("of %d colors in the rules, some have no value", used)
	}
	for _, c := range colors {
		if !strings.Contains(rules, "var(--graph-"+c.name+")") {
			t.Errorf("no rule uses the color %s", c.name)
		}
		if !strings.Contains(Style(), "--graph-"+c.name+": light-dark(") {
			t.Errorf("the color %s is not defined for light and for dark", c.name)
		}
	}
}

func FuzzSVGNames(f *testing.F) {
	f.Add("plan", "yes", "Plans what to do.")
	f.Add(`"><script>alert(1)</script>`, "]]>", "<!-- --> & &amp; &#0;")
	f.Add("\x00\x1b\u202e\ufffe\xff", "\n\t\r", strings.Repeat("語", 400))
	f.Add("", "", "")
	f.Add(strings.Repeat("a", 3000), strings.Repeat("_-", 300), strings.Repeat("one two\n", 100))
	f.Fuzz(func(t *testing.T, id, answer, description string) {
		g := graphOf(id, approval(id, answer, id, answer, "b", "c"), orElse(script("b"), id), end("c"))
		g.Description = description
		g.Nodes[0].Description = description
		for _, standalone := range []bool{false, true} {
			got := pick(t, SVG(g, SVGOptions{Standalone: standalone, States: map[string]State{id: Done}}), standalone)
			if !slices.Contains(got.nodes, xmlChars(id)) {
				t.Errorf("%q is not among the nodes %q", id, got.nodes)
			}
		}
	})
}

// TestLabelsFit bounds what texts need.
func TestLabelsFit(t *testing.T) {
	if w := textWidth("take_topic", 100); w < 500 || w > 560 {
		t.Errorf("take_topic is %.0f wide in a font of 100", w)
	}
	for _, s := range []string{"", "short", "a_rather_long_name_of_a_node_that_goes_on", strings.Repeat("W", 500), strings.Repeat("語", 80)} {
		for _, line := range idLines(s) {
			if w := textWidth(line, idSize) * boldFactor; w > maxText {
				t.Errorf("%q is %.0f wide", line, w)
			}
		}
		if w := textWidth(cutWidth(s, smallSize, maxLabel), smallSize); w > maxLabel {
			t.Errorf("the label of %.20q is %.0f wide", s, w)
		}
	}
	if got := idLines("a_rather_long_name_of_a_node_that_goes_on"); len(got) != 2 || !strings.HasSuffix(got[0], "_") || strings.Contains(got[1], "…") {
		t.Errorf("a long id is cut into %q", got)
	}
	if got := wrapWidth("one two three four five six seven", 10, 60); len(got) != 3 || !strings.HasSuffix(got[2], "…") {
		t.Errorf("wrapped: %q", got)
	}
}

// shipped returns the graphs that come with the program and the examples.
func shipped(t testing.TB) map[string]*graph.Graph {
	t.Helper()
	found := map[string]*graph.Graph{}
	for _, pattern := range []string{"assets/agents/*/graph.yaml", "examples/*/graph.yaml", "examples/graphs/*/graph.yaml"} {
		files, err := filepath.Glob(filepath.Join("..", "..", "..", "..", filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			g, _, err := graph.Load(file)
			if err != nil {
				t.Fatal(err)
			}
			found[file] = g
		}
	}
	if len(found) < 15 {
		t.Fatalf("only %d graphs were found", len(found))
	}
	return found
}

// randomGraph returns a graph in which all nodes can be reached, with fan-outs, fallbacks, maps,
// and approvals that go back.
func randomGraph(n int, seed uint64) *graph.Graph {
	r := rand.New(rand.NewPCG(seed, 1))
	g := &graph.Graph{Name: fmt.Sprintf("random %d", n), Start: "n0"}
	for i := range n {
		id := fmt.Sprintf("n%d", i)
		then := fmt.Sprintf("n%d", i+1)
		near := func() string { return fmt.Sprintf("n%d", min(n-1, i+1+r.IntN(6))) }
		switch {
		case i == n-1:
			g.Nodes = append(g.Nodes, end(id))
		case i%7 == 3:
			g.Nodes = append(g.Nodes, approval(id, "yes", then, "no", fmt.Sprintf("n%d", max(0, i-r.IntN(8))), near()))
		case i%5 == 2:
			g.Nodes = append(g.Nodes, orElse(script(id, then), near()))
		case i%11 == 6:
			g.Nodes = append(g.Nodes, mapOver(id, near(), then))
		case i%6 == 1:
			g.Nodes = append(g.Nodes, llm(id, then, near(), near()))
		default:
			g.Nodes = append(g.Nodes, llm(id, near(), then))
		}
	}
	return g
}

// TestCrossings compares how often edges cross with what the layout of others makes of the same
// boxes, arrows and labels.
func TestCrossings(t *testing.T) {
	modules := npmtest.Install(t, filepath.Join("testdata", "dagre"))
	names, all := []string{}, shipped(t)
	for name, g := range graphs() {
		all[name] = g
	}
	for i := range 12 {
		all[fmt.Sprintf("random %d", i)] = randomGraph(8+2*i, uint64(i))
	}
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	type box struct{ W, H float64 }
	type arrow struct {
		From, To int
		W, H     float64
	}
	type diagram struct {
		Boxes  []box   `json:"boxes"`
		Arrows []arrow `json:"arrows"`
	}
	var diagrams []diagram
	ours := make([]int, len(names))
	for i, name := range names {
		s := &svg{picture: newPicture(all[name], 0)}
		s.arrange()
		var d diagram
		var lines [][]layered.Point
		for _, b := range s.boxes {
			d.Boxes = append(d.Boxes, box{b.W, b.H})
		}
		for _, a := range s.arrows {
			d.Arrows = append(d.Arrows, arrow{a.From, a.To, a.LabelW, a.LabelH})
			lines = append(lines, flat(a.Path))
		}
		diagrams = append(diagrams, d)
		ours[i] = crossings(lines)
	}
	input, err := json.Marshal(diagrams)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", "testdata/dagre/layout.mjs")
	cmd.Env = append(os.Environ(), "DAGRE_MODULES="+modules)
	cmd.Stdin = bytes.NewReader(bytes.ToLower(input))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var theirs [][][]layered.Point
	if err := json.Unmarshal(out, &theirs); err != nil {
		t.Fatal(err)
	}
	sum, theirSum := 0, 0
	for i, name := range names {
		c := crossings(theirs[i])
		t.Logf("%-50s %3d crossings, dagre %3d", name, ours[i], c)
		if ours[i] > c+2+c/4 {
			t.Errorf("%s: edges cross %d times, and %d times in the layout of dagre", name, ours[i], c)
		}
		sum, theirSum = sum+ours[i], theirSum+c
	}
	if sum > theirSum {
		t.Errorf("edges cross %d times in all, and %d times in the layouts of dagre", sum, theirSum)
	}
}

// flat returns the path as a line of short pieces.
func flat(path []layered.Curve) []layered.Point {
	line := []layered.Point{path[0][0]}
	for _, c := range path {
		pieces := 8
		if c[0] == c[1] { // straight
			pieces = 1
		}
		for i := 1; i <= pieces; i++ {
			t := float64(i) / float64(pieces)
			u := 1 - t
			line = append(line, layered.Point{
				X: u*u*u*c[0].X + 3*u*u*t*c[1].X + 3*u*t*t*c[2].X + t*t*t*c[3].X,
				Y: u*u*u*c[0].Y + 3*u*u*t*c[1].Y + 3*u*t*t*c[2].Y + t*t*t*c[3].Y,
			})
		}
	}
	return line
}

// crossings counts how often lines cross. Touching at their ends is not crossing.
func crossings(lines [][]layered.Point) int {
	side := func(a, b, p layered.Point) float64 { return (b.X-a.X)*(p.Y-a.Y) - (b.Y-a.Y)*(p.X-a.X) }
	near := func(p, q layered.Point) bool { return math.Hypot(p.X-q.X, p.Y-q.Y) < 2 }
	count := 0
	for i, line := range lines {
		for _, other := range lines[:i] {
			for j := 1; j < len(line); j++ {
				a, b := line[j-1], line[j]
				for k := 1; k < len(other); k++ {
					c, d := other[k-1], other[k]
					if min(a.Y, b.Y) > max(c.Y, d.Y) || min(c.Y, d.Y) > max(a.Y, b.Y) || side(a, b, c)*side(a, b, d) >= 0 || side(c, d, a)*side(c, d, b) >= 0 {
						continue
					}
					if j == 1 && near(a, other[0]) || k == 1 && near(c, line[0]) || j == len(line)-1 && near(b, other[len(other)-1]) {
						continue
					}
					count++
				}
			}
		}
	}
	return count
}

// BenchmarkSVG draws what is large for a graph of an agent; 200 nodes are to take less than 100 ms.
func BenchmarkSVG(b *testing.B) {
	for _, n := range []int{30, 200} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g := randomGraph(n, 2)
			for b.Loop() {
				SVG(g, SVGOptions{Standalone: true})
			}
		})
	}
}
