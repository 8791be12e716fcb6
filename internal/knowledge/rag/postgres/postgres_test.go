package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"loki/internal/base/fault"
	"loki/internal/knowledge/rag"
	"loki/internal/knowledge/rag/postgres"
	"loki/internal/knowledge/rag/ragtest"
)

var settings = rag.Settings{EmbeddingModel: "m", ChunkSize: 100, ChunkOverlap: 5, TopK: 5, Documents: []string{"/d"}}

func store(t testing.TB, address, name string) *postgres.Store {
	t.Helper()
	s, err := postgres.New(address, name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// chunk makes one whose vector is the angle of n degrees.
func chunk(text string, n float64) rag.Chunk {
	sin, cos := math.Sincos(n * math.Pi / 180)
	return rag.Chunk{Heading: "Top", Text: text, Start: 1, End: 2, Vector: []float32{float32(cos), float32(sin), 0}}
}

// documents of the tests, by path.
func documents(i int) (string, []rag.Chunk) {
	words := strings.Fields("apple apples banana cherry date elder fig grape hazel iris")
	var chunks []rag.Chunk
	for j := range 1 + i%3 {
		text := fmt.Sprint("document", i, " ") + strings.Join(words[i%7:3+i%7], " ") + strings.Repeat(" apple", j)
		chunks = append(chunks, chunk(text, float64(i*7%180+j)))
	}
	return fmt.Sprintf("/d/%d.md", i), chunks
}

func build(t testing.TB, s rag.Store, set rag.Settings) rag.Build {
	t.Helper()
	b, err := s.Build(t.Context(), set)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func put(t testing.TB, b rag.Build, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		path, chunks := documents(i)
		if err := b.Put(t.Context(), rag.File{Path: path, Hash: fmt.Sprint("hash", i)}, chunks); err != nil {
			t.Fatal(err)
		}
	}
}

func commit(t testing.TB, b rag.Build, keep func(string) bool) rag.Stats {
	t.Helper()
	if keep == nil {
		keep = func(string) bool { return true }
	}
	st, err := b.Commit(t.Context(), func(f rag.File) (string, bool) { return f.Source, keep(f.Path) })
	if err != nil {
		t.Fatal(err)
	}
	closeBuild(t, b)
	return st
}

func closeBuild(t testing.TB, b rag.Build) {
	t.Helper()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, s rag.Store) rag.Index {
	t.Helper()
	x, err := s.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return x
}

// has checks that x has the documents from one up to another, and finds them.
func has(t testing.TB, x rag.Index, from, to int) {
	t.Helper()
	var got, want []string
	for f, err := range x.Files(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, f.Path)
	}
	for i := from; i < to; i++ {
		path, _ := documents(i)
		want = append(want, path)
	}
	slices.Sort(got)
	slices.Sort(want)
	found, err := x.Match(t.Context(), fmt.Sprint("document", from), 5)
	if err != nil || len(found) == 0 || !slices.Equal(got, want) {
		t.Errorf("%v, match %v, %v, want %v", got, found, err, want)
	}
}

func TestPGlite(t *testing.T) {
	t.Parallel()
	conformance(t, pglite(t)+"&search_path=knowledge")
}

func conformance(t *testing.T, address string) {
	var stores atomic.Int64
	ragtest.Test(t, ragtest.Options{New: func(t *testing.T) func() rag.Store {
		name := fmt.Sprint("base ", stores.Add(1))
		return func() rag.Store { return store(t, address, name) }
	}})
}

// TestInstalled does with a server of many sessions what needs them.
func TestInstalled(t *testing.T) {
	t.Parallel()
	address, stop := installed(t)
	for _, tt := range []struct {
		name string
		test func(t *testing.T, address string)
	}{
		{"conformance", conformance},
		{"reversible", reversible},
		{"names", names},
		{"killed", killedBuilder},
		{"canceled", canceled},
		{"sweep", sweep},
		{"segments", segments},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.test(t, address+"&search_path=rag_"+tt.name+",public") })
	}
	serverGone(t, address, stop)
}

// names lists what was built.
func names(t *testing.T, address string) {
	list := func(want ...string) {
		t.Helper()
		if got, err := store(t, address, "any").Names(t.Context()); err != nil || !slices.Equal(got, want) {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	list()
	for _, name := range []string{"rags/b", "rags/a", "agents/x/rag"} {
		b := build(t, store(t, address, name), settings)
		put(t, b, 0, 1)
		commit(t, b, func(string) bool { return true })
	}
	if b := build(t, store(t, address, "rags/unfinished"), settings); b.Close() != nil {
		t.Error("closing a build failed")
	}
	list("agents/x/rag", "rags/a", "rags/b")
}

// reversible stores what PostgreSQL has no text for.
func reversible(t *testing.T, address string) {
	s := store(t, address, "odd")
	b := build(t, s, settings)
	odd, word := "/d/\xff\x00.md", strings.Repeat("long", 5000)
	if err := b.Put(t.Context(), rag.File{Path: odd, Hash: "h"}, []rag.Chunk{{Text: "\x01zero \x00 byte \xff", Vector: []float32{0, 1}}, {Text: word, Vector: []float32{1, 0}}}); err != nil {
		t.Fatal(err)
	}
	commit(t, b, func(path string) bool { return path == odd })
	x := open(t, s)
	found, err := x.Match(t.Context(), word, 5)
	if err != nil || len(found) != 1 || found[0].ID.Seq != 1 {
		t.Errorf("match %v, %v", found, err)
	}
	chunks, err := x.Chunks(t.Context(), []rag.ID{{File: 1}}, false)
	if err != nil || len(chunks) != 1 || chunks[0].Path != odd || chunks[0].Text != "\x01zero \x00 byte \xff" {
		t.Errorf("chunks %+v, %v", chunks, err)
	}
}

func killedBuilder(t *testing.T, address string) {
	s := store(t, address, "killed")
	b := build(t, s, settings)
	put(t, b, 0, 5)
	if err := b.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	put(t, b, 5, 10)
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), `SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory'`); err != nil {
		t.Fatal(err)
	}
	next := build(t, s, settings)
	if err := b.Close(); err == nil {
		t.Error("what was put could not be flushed")
	}
	if _, ok, err := next.File(t.Context(), "/d/4.md"); !next.Resumed() || !ok || err != nil {
		t.Errorf("resumed %v, file %v, %v", next.Resumed(), ok, err)
	}
	put(t, next, 5, 10)
	commit(t, next, nil)
	has(t, open(t, s), 0, 10)
}

func canceled(t *testing.T, address string) {
	s := store(t, address, "canceled")
	b := build(t, s, settings)
	put(t, b, 0, 5)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Flush(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, _, err := b.File(ctx, "/x"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	closeBuild(t, b)
	b = build(t, s, settings)
	if _, ok, err := b.File(t.Context(), "/d/4.md"); !ok || err != nil {
		t.Errorf("file %v, %v", ok, err)
	}
	commit(t, b, nil)
	if _, err := open(t, s).Match(ctx, "apple", 5); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// sweep looks for what is left of old generations.
func sweep(t *testing.T, address string) {
	s := store(t, address, "swept")
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	left := func() (generations, files, chunks, postings int) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM generations), (SELECT count(*) FROM files),
			(SELECT count(DISTINCT file) FROM chunks), (SELECT count(DISTINCT file) FROM postings CROSS JOIN unnest(files) AS file)`).Scan(&generations, &files, &chunks, &postings); err != nil {
			t.Fatal(err)
		}
		return generations, files, chunks, postings
	}
	check := func(name string, generations, files int) {
		t.Helper()
		if g, f, c, p := left(); g != generations || f != files || c != files || p != files {
			t.Errorf("%s: %d generations, files %d %d %d", name, g, f, c, p)
		}
	}
	full := func(from, to int, set rag.Settings) {
		t.Helper()
		b := build(t, s, set)
		put(t, b, from, to)
		seen := make(map[string]bool)
		for i := from; i < to; i++ {
			path, _ := documents(i)
			seen[path] = true
		}
		commit(t, b, func(path string) bool { return seen[path] })
	}
	full(0, 10, settings)
	old := open(t, s)
	full(0, 5, settings) // each of them anew
	check("with a reader", 2, 15)
	has(t, old, 0, 10)
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	full(0, 5, settings)
	check("without", 1, 5)
	other := settings
	other.ChunkSize++
	full(3, 10, other)
	check("another series", 1, 7)
	if err := s.Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("deleted", 0, 0)
}

// segments flushes each document, and builds often.
func segments(t *testing.T, address string) {
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	atMost := func(most int) {
		t.Helper()
		var n, rows, tokens int
		if err := conn.QueryRow(t.Context(), `SELECT count(DISTINCT segment), count(*), count(DISTINCT token) FROM postings`).Scan(&n, &rows, &tokens); err != nil {
			t.Fatal(err)
		}
		if n < 1 || n > most || rows > n*tokens {
			t.Errorf("%d segments, %d rows for %d tokens", n, rows, tokens)
		}
	}
	s := store(t, address, "flushed")
	b := build(t, s, settings)
	for i := range 30 {
		put(t, b, i, i+1)
		if err := b.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	atMost(30)
	commit(t, b, nil)
	atMost(1)
	var estimate float64
	if err := conn.QueryRow(t.Context(), `SELECT reltuples FROM pg_class WHERE oid = 'files'::regclass`).Scan(&estimate); err != nil || estimate != 30 {
		t.Errorf("searches are planned for %v files, %v", estimate, err)
	}
	old := open(t, s)
	want, err := old.Match(t.Context(), "apple grape", 100)
	if err != nil || len(want) < 20 {
		t.Errorf("%v, %v", want, err)
	}
	for i := 30; i < 50; i++ {
		b := build(t, s, settings)
		put(t, b, i, i+1)
		commit(t, b, nil)
	}
	atMost(9)
	if got, err := old.Match(t.Context(), "apple grape", 100); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	has(t, old, 0, 30)
	has(t, open(t, s), 0, 50)
	long := slices.Repeat([]rag.Chunk{chunk("apple", 1)}, 100)
	b = build(t, s, settings)
	for i := range 15 {
		if err := b.Put(t.Context(), rag.File{Path: fmt.Sprint("/long/", i), Hash: "h"}, long); err != nil {
			t.Fatal(err)
		}
		if err := b.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	atMost(8) // also of a build that is not through
	commit(t, b, nil)
}

func serverGone(t *testing.T, address string, stop func()) {
	s := store(t, address, "gone")
	commit(t, build(t, s, settings), nil)
	x := open(t, s)
	b := build(t, s, settings)
	put(t, b, 0, 5)
	stop()
	_, open := s.Open(t.Context())
	_, match := x.Match(t.Context(), "apple", 5)
	for name, err := range map[string]error{"flush": b.Flush(t.Context()), "open": open, "match": match, "configure": s.Configure(t.Context(), settings)} {
		if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "knowledge base gone in the database test1 at 127.0.0.1") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := b.Close(); err != nil {
		t.Errorf("after the error of Flush: %v", err)
	}
	if fault.HintOf(open) == "" || strings.Contains(open.Error(), "\n") {
		t.Errorf("%v", open)
	}
}

func TestAddresses(t *testing.T) {
	for _, address := range []string{
		"postgres://u:secret@h:port/db", "postgres://u:sec ret@h/db", "postgres://u:se%zzcret@h", "user=u password='secret host=h",
		"postgres://u:secret@h/db?sslmode=secret", "mysql://u:secret@h/db",
	} {
		_, err := postgres.New(address, "x")
		if fault.CodeOf(err) != fault.Config || strings.Contains(err.Error()+fault.HintOf(err), "secret") {
			t.Errorf("%s: %v", address, err)
		}
	}
	s := store(t, "postgres://u:secret@127.0.0.1:1/db?connect_timeout=1", "x")
	if _, err := s.Build(t.Context(), settings); err == nil || strings.Contains(err.Error(), "secret") || fault.HintOf(err) == "" {
		t.Error(err)
	}
}
