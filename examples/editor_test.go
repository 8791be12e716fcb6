package examples

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/textproto"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"loki/internal/base/process/npmtest"
)

// wrong are graphs with a mistake each, and the line of it, from 1, where an editor has to show it.
var wrong = map[string]struct {
	text string
	line int
}{
	"unknown_field":  {"nodes:\n  a:\n    type: llm\n    prompt: p\n    promt: p\n    next: z\n  z: {type: end}\n", 8},
	"unknown_type":   {"nodes:\n  a:\n    type: lm\n  z: {type: end}\n", 6},
	"missing_field":  {"nodes:\n  a:\n    type: llm\n    next: z\n  z: {type: end}\n", 5},
	"wrong_type":     {"settings:\n  max_concurrency: many\nnodes:\n  a: {type: end}\n", 5},
	"edge_with_typo": {"nodes:\n  a:\n    type: llm\n    prompt: p\n    next:\n      - {wen: n > 1, to: z}\n  z: {type: end}\n", 9},
	"no_yaml":        {"nodes:\n  a: {type: end\n", 6},
}

// TestEditor has the language server that editors use look at the examples, in which it finds nothing, and at mistakes, which it finds
// where they are.
func TestEditor(t *testing.T) {
	const modeline = "# yaml-language-server: $schema="
	server := startLanguageServer(t)
	want := make(map[string]int) // lines by URI, 0 for none
	root, _ := os.Getwd()        // without it there are no examples
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte(modeline)) {
			want[server.open(path, string(text))] = 0
		}
		return err
	})
	if err != nil || len(want) < 50 {
		t.Fatalf("%d examples: %v", len(want), err)
	}
	for name, tt := range wrong { // not on disk
		text := modeline + "../../../docs/graph.schema.json\nname: x\nstart: a\n" + tt.text
		want[server.open(filepath.Join(root, "graphs", name, "graph.yaml"), text)] = tt.line
	}
	for uri, found := range server.diagnostics(len(want)) {
		line, known := want[uri]
		lines := make([]int, len(found))
		for i, d := range found {
			lines[i] = d.Range.Start.Line + 1
		}
		if !known || line == 0 && len(found) > 0 || line > 0 && !slices.Contains(lines, line) {
			t.Errorf("%s: lines %v, want line %d: %+v", uri, lines, line, found)
		}
	}
}

type diagnostic struct {
	Range   struct{ Start struct{ Line int } }
	Message string
}

// languageServer is a client of yaml-language-server.
type languageServer struct {
	t   *testing.T
	in  io.Writer
	out *textproto.Reader
}

type object = map[string]any

func startLanguageServer(t *testing.T) *languageServer {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	cmd := exec.CommandContext(ctx, "node", filepath.Join(npmtest.Install(t, "testdata/npm"), "yaml-language-server", "bin", "yaml-language-server"), "--stdio")
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if err := cmp.Or(inErr, outErr, cmd.Start()); err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = cmd.Wait() })
	s := &languageServer{t, in, textproto.NewReader(bufio.NewReader(out))}
	s.send(object{"id": 1, "method": "initialize", "params": object{"processId": nil, "rootUri": nil, "capabilities": object{}}})
	s.send(object{"method": "initialized", "params": object{}})
	// No schemas of others: the ones from the net need not be there.
	s.send(object{"method": "workspace/didChangeConfiguration", "params": object{"settings": object{"yaml": object{"validate": true, "schemaStore": object{"enable": false}}}}})
	return s
}

// send sends a request or a notification of JSON-RPC.
func (s *languageServer) send(m object) {
	m["jsonrpc"] = "2.0"
	text, _ := json.Marshal(m) // of objects, texts and numbers
	if _, err := fmt.Fprintf(s.in, "Content-Length: %d\r\n\r\n%s", len(text), text); err != nil {
		s.t.Fatal(err)
	}
}

// open shows the server a file and returns its URI.
func (s *languageServer) open(path, text string) string {
	uri := (&url.URL{Scheme: "file", Path: "/" + strings.TrimPrefix(filepath.ToSlash(path), "/")}).String()
	s.send(object{"method": "textDocument/didOpen", "params": object{"textDocument": object{"uri": uri, "languageId": "yaml", "version": 1, "text": text}}})
	return uri
}

// diagnostics returns what the server finds in n files.
func (s *languageServer) diagnostics(n int) map[string][]diagnostic {
	found := make(map[string][]diagnostic)
	for len(found) < n {
		header, err := s.out.ReadMIMEHeader()
		if err != nil {
			s.t.Fatalf("after the diagnostics of %d of %d files: %v", len(found), n, err)
		}
		size, _ := strconv.Atoi(header.Get("Content-Length"))
		text := make([]byte, size)
		var m struct {
			Method string
			Params struct {
				URI         string
				Diagnostics []diagnostic
			}
		}
		if _, err := io.ReadFull(s.out.R, text); err != nil {
			s.t.Fatal(err)
		}
		if json.Unmarshal(text, &m) == nil && m.Method == "textDocument/publishDiagnostics" {
			found[m.Params.URI] = m.Params.Diagnostics
		}
	}
	return found
}
