package rag_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"loki/internal/base/fault"
	"loki/internal/knowledge/rag"
	"loki/internal/knowledge/rag/memstore"
)

func library(t *testing.T, files ...string) rag.Library {
	dir := t.TempDir()
	for _, name := range files {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return rag.Library{Dir: dir, Store: func(string) (rag.Store, error) { return new(memstore.Store), nil }}
}

func TestNames(t *testing.T) {
	l := library(t, "notes.db", "old.yaml", "both.db", "both.yaml", ".hidden.db", "x.db-wal", "y.txt", ".db")
	names, err := l.Names()
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "names", names, []string{"both", "notes", "old"})
	if names, err := (rag.Library{Dir: filepath.Join(l.Dir, "missing")}).Names(); err != nil || len(names) > 0 {
		t.Error(names, err)
	}
}

func TestNamesOfBases(t *testing.T) {
	l := library(t)
	for _, name := range []string{"notes", "my notes", "c++", "v1.2", "日本"} {
		if file, err := l.File(name); err != nil || file != filepath.Join(l.Dir, name+".db") {
			t.Errorf("%q: %s, %v", name, file, err)
		}
	}
	for name, why := range map[string]string{
		"": "it is empty", "a/b": "it contains '/'", `a\b`: `it contains '\\'`, "..": "it begins with a dot", ".x": "it begins with a dot",
		"nul": "it is the name of a device on Windows", "COM1.x": "it is the name of a device on Windows", " a": "there is white space around it", "a\x1b": "it contains a control character",
	} {
		if _, err := l.File(name); fault.CodeOf(err) != fault.Usage || !strings.HasSuffix(err.Error(), "cannot be the name of a knowledge base: "+why) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestMissingBase(t *testing.T) {
	l := library(t, "notes.db", "old.yaml")
	for _, tt := range []struct{ name, want, hint string }{
		{"other", `there is no knowledge base "other"`, "build it: loki --rag other --rag-add DIR"},
		{"note", `there is no knowledge base "note"`, "build it: loki --rag note --rag-add DIR; or did you mean notes?"},
		{"old", `knowledge base "old" is one of an older version`, "it is built anew from its documents when it is used, or at once: loki --rag old --rebuild-rag"},
		{"agent/node", `there is no knowledge base "agent/node"`, "build it: loki --rag agent/node --rag-add DIR"},
	} {
		err := l.NotBuiltError(tt.name)
		if fault.CodeOf(err) != fault.NotFound || err.Error() != tt.want || fault.HintOf(err) != tt.hint {
			t.Errorf("%s: %v, hint %q", tt.name, err, fault.HintOf(err))
		}
	}
}

const oldFile = `embedding_model: openai:text-embedding-3-small
chunk_size: 1500
chunk_overlap: 75
reranker_model: null
top_k: 4
batch_size: 100
next_file_id: 2
document_paths:
- /docs/**/*.md
- https://site.test/**
files:
  0:
    hash: abc
    path: /docs/a.md
    documents:
    - page_content: |-
        chunk_size: 1
        document_paths: []
      metadata: {}
vectors:
  0-0: AAAAAA==
`

func TestReadOld(t *testing.T) {
	want := rag.Settings{
		EmbeddingModel: "openai:text-embedding-3-small", ChunkSize: 1500, ChunkOverlap: 75, TopK: 4,
		Documents: []string{"/docs/**/*.md", "https://site.test/**"},
	}
	file := filepath.Join(t.TempDir(), "old.yaml")
	read := func(text string) (rag.Settings, error) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return rag.ReadOld(file)
	}
	for name, text := range map[string]string{
		"as_written":   oldFile,
		"crlf":         strings.ReplaceAll(oldFile, "\n", "\r\n"),
		"no_line_end":  strings.TrimSpace(oldFile),
		"large":        oldFile + "  0-1: " + strings.Repeat("A", 20<<20) + "\n",
		"keys_behind":  "vectors: {}\nfiles: {}\n" + oldFile[:strings.Index(oldFile, "files:")],
		"own_comments": "# mine\n\n" + oldFile,
	} {
		if got, err := read(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if got, err := read("embedding_model: a:b\nchunk_size: 100\ndocument_paths: [/x]\nbatch_size: null\n"); err != nil || got.ChunkOverlap != 5 || got.TopK != 5 {
		t.Errorf("defaults: %+v, %v", got, err)
	}
	for name, tt := range map[string]struct{ text, want string }{
		"empty":      {"", "reading a knowledge base of an older version: "},
		"not_yaml":   {"a: [", "old.yaml:1:"},
		"wrong_type": {strings.Replace(oldFile, "1500", "large", 1), "old.yaml:2:13: chunk_size: expected a whole number"},
		"line":       {oldFile + "chunk_overlap: 2\n", "old.yaml:22:1: chunk_overlap: "},
		"sizes":      {strings.Replace(oldFile, "75", "1500", 1), "chunk_overlap (1500) must be less than chunk_size (1500)"},
	} {
		if _, err := read(tt.text); fault.CodeOf(err) != fault.Config || !strings.Contains(err.Error(), tt.want) || !strings.Contains(fault.HintOf(err), file) {
			t.Errorf("%s: %v, hint %q", name, err, fault.HintOf(err))
		}
	}
	if _, err := rag.ReadOld(filepath.Join(t.TempDir(), "missing.yaml")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if rag.OldFile("/rags/old.db") != "/rags/old.yaml" {
		t.Error(rag.OldFile("/rags/old.db"))
	}
}

func FuzzReadOld(f *testing.F) {
	f.Add([]byte(oldFile))
	f.Add([]byte("files:\nx\nvectors"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file := filepath.Join(t.TempDir(), "old.yaml")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := rag.ReadOld(file); err == nil && s.Validate() != nil {
			t.Errorf("%+v", s)
		}
	})
}
