package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"loki/internal/fault"
	"loki/internal/rag"
	"loki/internal/rag/postgres"
	"loki/internal/rank"
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
		if err := b.Put(t.Context(), path, fmt.Sprint("hash", i), chunks); err != nil {
			t.Fatal(err)
		}
	}
}

func commit(t testing.TB, b rag.Build, keep func(string) bool) rag.Stats {
	t.Helper()
	if keep == nil {
		keep = func(string) bool { return true }
	}
	st, err := b.Commit(t.Context(), keep)
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

func paths(t testing.TB, x rag.Index) []string {
	t.Helper()
	var list []string
	for f, err := range x.Files(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, f.Path)
	}
	return list
}

func TestPGlite(t *testing.T) { contract(t, pglite(t)) }

// TestInstalled does with a server of many sessions what needs them.
func TestInstalled(t *testing.T) {
	address, stop := installed(t)
	for _, tt := range []struct {
		name string
		test func(t *testing.T, address string)
	}{
		{"contract", contract},
		{"killed", killedBuilder},
		{"canceled", canceled},
		{"sweep", sweep},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.test(t, address+"&search_path=rag_"+tt.name+",public") })
	}
	serverGone(t, address, stop)
}

func contract(t *testing.T, address string) {
	ctx := t.Context()
	s := store(t, address, "fruit")
	if _, err := s.Open(ctx); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("open: %v", err)
	}
	if err := s.Configure(ctx, settings); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("configure: %v", err)
	}
	b := build(t, s, settings)
	if b.Resumed() {
		t.Error("a new build is resumed")
	}
	put(t, b, 0, 40)
	if st := commit(t, b, nil); st.Files != 40 || st.Chunks != 79 || st.Dimensions != 3 || st.Built.IsZero() {
		t.Errorf("stats %+v", st)
	}
	old := open(t, s)
	same(t, old, 0, 40)

	// A build that is interrupted, and goes on.
	b = build(t, s, settings)
	put(t, b, 40, 45)
	if f, ok, err := b.File(ctx, "/d/3.md"); err != nil || !ok || f.Hash != "hash3" || f.ID != 4 {
		t.Errorf("file %+v, %v, %v", f, ok, err)
	}
	if f, ok, err := b.File(ctx, "/d/44.md"); err != nil || !ok || f.ID != 45 {
		t.Errorf("file %+v, %v, %v", f, ok, err)
	}
	if _, err := s.Build(ctx, settings); fault.CodeOf(err) != fault.Usage || !strings.Contains(err.Error(), "process ") {
		t.Errorf("second builder: %v", err)
	}
	closeBuild(t, b)
	same(t, open(t, s), 0, 40)
	b = build(t, s, settings)
	if !b.Resumed() {
		t.Error("the build is not resumed")
	}
	_, known := documents(44)
	vectors, err := b.Vectors(ctx, []rag.Chunk{known[0], {Text: "unknown"}, known[1]})
	if err != nil || len(vectors) != 3 || !slices.Equal(vectors[0], known[0].Vector) || vectors[1] != nil || !slices.Equal(vectors[2], known[1].Vector) {
		t.Errorf("vectors %v, %v", vectors, err)
	}
	put(t, b, 45, 50)
	if st := commit(t, b, func(path string) bool { return len(path) == len("/d/44.md") }); st.Files != 40 {
		t.Errorf("stats %+v", st)
	}
	same(t, open(t, s), 10, 50)
	same(t, old, 0, 40)

	// Another model, with other dimensions.
	other := settings
	other.EmbeddingModel = "n"
	b = build(t, s, settings)
	put(t, b, 60, 61)
	closeBuild(t, b)
	b = build(t, s, other)
	if _, ok, err := b.File(ctx, "/d/20.md"); b.Resumed() || ok || err != nil {
		t.Error("files of another model are in the build")
	}
	odd := "/d/\xff\x00.md"
	if err := b.Put(ctx, odd, "h", []rag.Chunk{{Text: "zero \x00 byte \xff", Vector: []float32{0, 1}}, {Text: strings.Repeat("long", 5000), Vector: []float32{1, 0}}}); err != nil {
		t.Fatal(err)
	}
	if err := b.Put(ctx, "/x", "h", []rag.Chunk{{Vector: []float32{0, 1, 0}}}); err == nil {
		t.Error("another number of dimensions")
	}
	commit(t, b, func(path string) bool { return path == odd })
	x := open(t, s)
	if got := paths(t, x); !slices.Equal(got, []string{odd}) {
		t.Errorf("paths %q", got)
	}
	found, err := x.Match(ctx, strings.Repeat("long", 5000)+" byte", 5)
	if err != nil || len(found) != 2 {
		t.Errorf("match %v, %v", found, err)
	}
	if found, err := x.Nearest(ctx, []float32{0, 1}, 5); err != nil || len(found) != 1 || found[0].ID.Seq != 0 {
		t.Errorf("nearest %v, %v", found, err)
	}
	same(t, old, 0, 40)

	other.TopK, other.ChunkSize = 9, 1
	if err := s.Configure(ctx, other); err != nil {
		t.Fatal(err)
	}
	if st, err := x.Stats(ctx); err != nil || st.Settings.TopK != 9 || st.Settings.ChunkSize != 100 || st.Files != 1 || st.Chunks != 2 || st.Dimensions != 2 {
		t.Errorf("stats %+v, %v", st, err)
	}
	second := store(t, address, "other")
	commit(t, build(t, second, settings), nil)
	if err := s.Delete(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(ctx); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("open: %v", err)
	}
	if got := paths(t, open(t, second)); len(got) != 0 {
		t.Errorf("paths %q", got)
	}
}

// same compares what x finds with a search in the documents from one up to another.
func same(t *testing.T, x rag.Index, from, to int) {
	t.Helper()
	ctx := t.Context()
	ids := make(map[string]int64)
	for f, err := range x.Files(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		ids[f.Path] = f.ID
	}
	var all []rag.Chunk
	for i := from; i < to; i++ {
		path, chunks := documents(i)
		for j, c := range chunks {
			c.ID, c.Path = rag.ID{File: ids[path], Seq: j}, path
			all = append(all, c)
		}
	}
	if len(ids) != to-from {
		t.Errorf("%d files, want %d", len(ids), to-from)
	}
	near := func(c rag.Chunk) float64 { return float64(c.Vector[0]) }
	check := func(name string, got []rag.Match, err error, score func(rag.Chunk) float64) {
		t.Helper()
		want := rankBy(all, score)
		want = want[:min(7, len(want))]
		same := slices.EqualFunc(got, want, func(a, b rag.Match) bool { return a.ID == b.ID && math.Abs(a.Score-b.Score) < 1e-5 })
		if err != nil || !same {
			t.Errorf("%s: got %v, %v, want %v", name, got, err, want)
		}
	}
	got, err := x.Nearest(ctx, []float32{1, 0, 0}, 7)
	check("nearest", got, err, near)
	for _, query := range []string{"apple", "apples banana grape banana", "nothing", "", "top"} {
		got, err := x.Match(ctx, query, 7)
		check(query, got, err, bm25(all, query))
	}
	want := all[5]
	chunks, err := x.Chunks(ctx, []rag.ID{want.ID, {File: 999, Seq: 0}, all[2].ID}, true)
	if err != nil || len(chunks) != 2 || chunks[0].Path != want.Path || chunks[0].Text != want.Text || chunks[0].Heading != "Top" ||
		chunks[0].Start != 1 || chunks[0].End != 2 || !slices.Equal(chunks[0].Vector, want.Vector) || chunks[1].ID != all[2].ID {
		t.Errorf("chunks %+v, %v", chunks, err)
	}
	if chunks, err := x.Chunks(ctx, []rag.ID{want.ID}, false); err != nil || len(chunks) != 1 || chunks[0].Vector != nil {
		t.Errorf("chunks %+v, %v", chunks, err)
	}
}

func rankBy(chunks []rag.Chunk, score func(rag.Chunk) float64) []rag.Match {
	var list []rag.Match
	for _, c := range chunks {
		if s := score(c); s > 0 {
			list = append(list, rag.Match{ID: c.ID, Score: s})
		}
	}
	slices.SortStableFunc(list, func(a, b rag.Match) int {
		switch {
		case a.Score > b.Score+1e-9:
			return -1
		case b.Score > a.Score+1e-9:
			return 1
		case a.ID.File != b.ID.File:
			return int(a.ID.File - b.ID.File)
		}
		return a.ID.Seq - b.ID.Seq
	})
	return list
}

func bm25(all []rag.Chunk, query string) func(rag.Chunk) float64 {
	total, with := 0.0, make(map[string]float64)
	tokens := func(c rag.Chunk) []string { return rank.Tokens(c.Heading + "\n" + c.Text) }
	for _, c := range all {
		list := tokens(c)
		total += float64(len(list))
		slices.Sort(list)
		for _, token := range slices.Compact(list) {
			with[token]++
		}
	}
	n := float64(len(all))
	return func(c rag.Chunk) float64 {
		list, score := tokens(c), 0.0
		for _, q := range rank.Tokens(query) {
			f := 0.0
			for _, token := range list {
				if token == q {
					f++
				}
			}
			score += math.Log(1+(n-with[q]+.5)/(with[q]+.5)) * f * 2.5 / (f + 1.5*(.25+.75*float64(len(list))/(total/n)))
		}
		return score
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
	same(t, open(t, s), 0, 10)
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
			(SELECT count(DISTINCT file) FROM chunks), (SELECT count(DISTINCT file) FROM postings)`).Scan(&generations, &files, &chunks, &postings); err != nil {
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
	same(t, old, 0, 10)
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

func serverGone(t *testing.T, address string, stop func()) {
	s := store(t, address, "gone")
	commit(t, build(t, s, settings), nil)
	x := open(t, s)
	b := build(t, s, settings)
	put(t, b, 0, 5)
	stop()
	_, open := s.Open(t.Context())
	_, match := x.Match(t.Context(), "apple", 5)
	for name, err := range map[string]error{"flush": b.Flush(t.Context()), "close": b.Close(), "open": open, "match": match, "configure": s.Configure(t.Context(), settings)} {
		if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "knowledge base gone in the database postgres at 127.0.0.1") {
			t.Errorf("%s: %v", name, err)
		}
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
