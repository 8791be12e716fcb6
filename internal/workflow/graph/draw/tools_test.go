package draw

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"loki/internal/base/text"
	"loki/internal/workflow/graph"
)

// labels returns what the picture of g must show: ids and edge labels.
func labels(p *picture) []string {
	var out []string
	for _, n := range drawn(p) {
		if n.inside != nil {
			out = append(out, printable(n.id)+" (graph)")
		} else {
			out = append(out, printable(n.id))
		}
		for _, e := range n.out {
			if e.label != "" {
				out = append(out, text.CutRunes(e.label, labelWidth))
			}
		}
	}
	return out
}

func TestGraphvizDrawsIt(t *testing.T) {
	dot, err := exec.LookPath("dot")
	if err != nil {
		t.Skip("graphviz is not installed")
	}
	for name, g := range graphs() {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), dot, "-Tsvg")
			cmd.Stdin = strings.NewReader(DOT(g, 2))
			var complaints bytes.Buffer
			cmd.Stderr = &complaints
			svg, err := cmd.Output()
			if err != nil || complaints.Len() > 0 {
				t.Fatalf("%v: %s", err, complaints.String())
			}
			texts := textsOf(t, svg)
			for _, want := range labels(newPicture(g, 2)) {
				if !slices.Contains(texts, want) {
					t.Errorf("%q is not in the picture, which shows %q", want, texts)
				}
			}
		})
	}
}

// textsOf returns the content of the text elements of an SVG.
func textsOf(t *testing.T, svg []byte) []string {
	t.Helper()
	var texts []string
	d := xml.NewDecoder(bytes.NewReader(svg))
	inText := false
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return texts
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			inText = token.Name.Local == "text"
		case xml.CharData:
			if inText {
				texts = append(texts, strings.ReplaceAll(string(token), "\u00a0", " "))
			}
		case xml.EndElement:
			inText = false
		}
	}
}

// MERMAID_MODULES names a directory in which npm has installed mermaid and jsdom.
func TestMermaidParsesIt(t *testing.T) {
	modules := os.Getenv("MERMAID_MODULES")
	if modules == "" {
		t.Skip("MERMAID_MODULES is not set")
	}
	script, err := filepath.Abs("testdata/parse.mjs")
	if err != nil {
		t.Fatal(err)
	}
	for name, g := range graphs() {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "node", script)
			cmd.Env = append(os.Environ(), "MERMAID_MODULES="+modules)
			cmd.Stdin = strings.NewReader(Mermaid(g, 2))
			cmd.Stderr = os.Stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			var parsed struct{ Vertices, Edges []string }
			if err := json.Unmarshal(out, &parsed); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			p := newPicture(g, 2)
			vertices, edges := 1, 1 // the start mark and its edge
			for _, n := range drawn(p) {
				vertices++
				if n.inside != nil { // a box, and a mark and its edge inside
					edges++
				}
				edges += len(n.out)
				if n.dynamic() {
					vertices, edges = vertices+1, edges+1
				}
			}
			if len(parsed.Vertices) != vertices || len(parsed.Edges) != edges {
				t.Errorf("%d vertices and %d edges, want %d and %d", len(parsed.Vertices), len(parsed.Edges), vertices, edges)
			}
			texts := append(parsed.Vertices, parsed.Edges...)
			for i, text := range texts {
				texts[i], _, _ = strings.Cut(text, "<br>")
			}
			for _, want := range labels(p) {
				if !slices.Contains(texts, want) {
					t.Errorf("%q is not in the picture, which shows %q", want, texts)
				}
			}
		})
	}
}

func BenchmarkText(b *testing.B) {
	nodes := make([]*graph.Node, 1000)
	for i := range nodes {
		nodes[i] = llm(string(rune('a'+i%26))+strings.Repeat("x", i/26), string(rune('a'+(i+1)%26))+strings.Repeat("x", (i+1)/26))
	}
	g := graphOf("chain", nodes...)
	for b.Loop() {
		Text(g, 80, 0)
	}
}
