package sqlite

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"loki/internal/knowledge/rag"
)

// TestOldIndex searches and builds with a file of version 2, whose index of words is of another kind.
func TestOldIndex(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		busy    bool // another process builds
		build   bool // nothing is searched before a build
		version int64
	}{
		{"search", false, false, formatVersion},
		{"search_while_building", true, false, oldVersion},
		{"build", false, true, formatVersion},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := New(t.TempDir() + "/x.db")
			for i := range 3 {
				if err := buildOne(t.Context(), s, i); err != nil {
					t.Fatal(err)
				}
			}
			matches := func() (list []rag.Match, version int64) {
				x, err := openIndex(t.Context(), s.path)
				if err != nil {
					t.Fatal(err)
				}
				for range 2 {
					if list, err = x.Match(t.Context(), "common word1", 9); err != nil {
						t.Fatal(err)
					}
				}
				if err := x.Close(); err != nil {
					t.Fatal(err)
				}
				if x, err = openIndex(t.Context(), s.path); err != nil {
					t.Fatal(err)
				}
				defer x.Close()
				return list, x.version
			}
			want, _ := matches()
			makeOld(t, s.path)
			if tt.busy {
				unlock, err := s.lock(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer unlock()
			}
			if tt.build {
				if err := buildOne(t.Context(), s, 1); err != nil { // once more
					t.Fatal(err)
				}
				want[0].ID.File = 4
			}
			got, version := matches()
			if !reflect.DeepEqual(got, want) || version != tt.version {
				t.Errorf("found %v in version %d, want %v in version %d", got, version, want, tt.version)
			}
		})
	}
}

// makeOld gives a file the tables of version 2.
func makeOld(t *testing.T, path string) {
	t.Helper()
	c, err := openWriter(path, false)
	if err == nil {
		err = errors.Join(c.run(`DROP TABLE occurrences; DROP TABLE words; ALTER TABLE files DROP COLUMN unread; ALTER TABLE base ADD COLUMN indexed INTEGER NOT NULL DEFAULT 0;
			CREATE TABLE segments (id INTEGER PRIMARY KEY, first INTEGER NOT NULL, chunks INTEGER NOT NULL, lengths BLOB NOT NULL);
			CREATE TABLE words (segment INTEGER NOT NULL, token BLOB NOT NULL, block BLOB NOT NULL, PRIMARY KEY (segment, token)) WITHOUT ROWID;
			PRAGMA user_version = 2`), c.close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestUnread keeps what was not read of a document.
func TestUnread(t *testing.T) {
	t.Parallel()
	s := New(t.TempDir() + "/x.db")
	b, err := s.Build(t.Context(), rag.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.Put(t.Context(), rag.File{Path: "/f", Unread: "1 chart"}, []rag.Chunk{{Text: "x", Vector: []float32{1}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Commit(t.Context(), func(rag.File) (string, bool) { return "", true }); err != nil {
		t.Fatal(err)
	}
	x, err := s.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	for f, err := range x.Files(t.Context()) {
		if err != nil || f.Unread != "1 chart" {
			t.Errorf("%+v, %v", f, err)
		}
	}
	if chunks, err := x.Chunks(t.Context(), []rag.ID{{File: 1}}, false); err != nil || chunks[0].Unread != "1 chart" {
		t.Errorf("%+v, %v", chunks, err)
	}
}

// TestOddWords finds what has punctuation, or quotation marks, in a word.
func TestOddWords(t *testing.T) {
	t.Parallel()
	s := New(t.TempDir() + "/x.db")
	b, err := s.Build(t.Context(), rag.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	words := []string{"server:github", "snake_case_name", "1,299.50", "צה\"ל", "o'clock", strings.Repeat("long", 300), "C++", "ＡＢＣ１２３", "a;b"}
	var chunks []rag.Chunk
	for _, w := range words {
		chunks = append(chunks, rag.Chunk{Text: "x " + w + " y", Vector: []float32{1}})
	}
	if err := b.Put(t.Context(), rag.File{Path: "/f"}, chunks); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Commit(t.Context(), func(rag.File) (string, bool) { return "", true }); err != nil {
		t.Fatal(err)
	}
	x, err := s.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	for i, w := range words {
		if found, err := x.Match(t.Context(), w, 1); err != nil || len(found) != 1 || found[0].ID.Seq != i {
			t.Errorf("%s: %v, %v", w, found, err)
		}
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add([]byte{1, 0xff, 0xff})
	f.Fuzz(func(_ *testing.T, data []byte) { _, _ = unpack(data) })
}

func buildOne(ctx context.Context, s *Store, i int) (err error) {
	b, err := s.Build(ctx, rag.Settings{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if err := b.Put(ctx, rag.File{Path: fmt.Sprint(i)}, []rag.Chunk{{Text: fmt.Sprint("common word", i), Vector: []float32{1}}}); err != nil {
		return err
	}
	_, err = b.Commit(ctx, func(rag.File) (string, bool) { return "", true })
	return err
}
