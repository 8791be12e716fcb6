package shapes

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/workflow/graph"
	"loki/internal/workflow/graph/draw"
)

// TestDraw draws each shape. The drawings name all nodes; those that people read in a text are compared.
func TestDraw(t *testing.T) {
	for _, s := range shapes(t) {
		t.Run(s.name, func(t *testing.T) {
			g, _, err := graph.Load(filepath.Join(s.name, graph.FileName))
			if err != nil {
				t.Fatal(err)
			}
			svg := draw.SVG(g, draw.SVGOptions{Depth: draw.DefaultDepth})
			wellFormed(t, svg)
			drawings := map[string]string{"txt": draw.Text(g, 100, draw.DefaultDepth), "mmd": draw.Mermaid(g, draw.DefaultDepth), "dot": draw.DOT(g, draw.DefaultDepth), "svg": string(svg)}
			for format, text := range drawings {
				for _, n := range g.Nodes {
					if !strings.Contains(text, n.ID) {
						t.Errorf("the %s drawing lacks node %s", format, n.ID)
					}
				}
			}
			golden(t, s.name+".txt", drawings["txt"])
			golden(t, s.name+".mmd", drawings["mmd"])
		})
	}
}

func wellFormed(t *testing.T, svg []byte) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// golden compares a text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is\n%s\nwant\n%s", name, got, want)
	}
}

// TestFingerprints makes sure that recorded runs of the shapes can be resumed by later programs, and that comments do not matter.
func TestFingerprints(t *testing.T) {
	var all strings.Builder
	for _, s := range shapes(t) {
		file := filepath.Join(s.name, graph.FileName)
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var prints [2]string
		for i, text := range [][]byte{src, append([]byte("# another comment\n"), src...)} {
			g, _, err := graph.Parse(file, text)
			if err != nil {
				t.Fatal(err)
			}
			prints[i] = graph.Fingerprint(g)
		}
		if prints[0] != prints[1] {
			t.Errorf("%s: a comment changes the fingerprint", s.name)
		}
		fmt.Fprintln(&all, s.name, prints[0])
	}
	golden(t, "fingerprints", all.String())
}
