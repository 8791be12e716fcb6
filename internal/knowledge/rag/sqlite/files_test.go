package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"

	"loki/internal/base/fault"
	"loki/internal/knowledge/rag"
	"loki/internal/knowledge/rag/sqlite"
)

// documents is the number of documents in a version of the knowledge base of the tests.
const documents = 60

// buildVersion brings the knowledge base to a version of its documents. From one version to the
// next a third of them changes, some are removed and some are added.
func buildVersion(ctx context.Context, s rag.Store, version int) (err error) {
	b, err := s.Build(ctx, rag.Settings{EmbeddingModel: "test", ChunkSize: 100, TopK: version})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	keep := make(map[string]bool)
	for i := 10 * version; i < 10*version+documents; i++ {
		path, seed := fmt.Sprintf("/docs/%d", i), uint64(i)
		if i%3 == 0 {
			seed += uint64(version) << 32
		}
		keep[path] = true
		hash := fmt.Sprint(seed)
		if f, ok, err := b.File(ctx, path); err != nil {
			return err
		} else if ok && f.Hash == hash {
			continue
		}
		r := rand.New(rand.NewPCG(seed, 0))
		var chunks []rag.Chunk
		for range r.IntN(12) {
			var text strings.Builder
			for range r.IntN(60) {
				fmt.Fprintf(&text, "word%d ", int(r.ExpFloat64()*20))
			}
			chunks = append(chunks, rag.Chunk{Text: text.String(), Vector: []float32{r.Float32(), r.Float32(), r.Float32(), r.Float32()}})
		}
		if err := b.Put(ctx, rag.File{Path: path, Hash: hash}, chunks); err != nil {
			return err
		}
		if i%7 == 0 {
			if err := b.Flush(ctx); err != nil {
				return err
			}
		}
	}
	_, err = b.Commit(ctx, func(f rag.File) (string, bool) { return f.Source, keep[f.Path] })
	return err
}

// dump returns what is in the index and what some searches find.
func dump(t *testing.T, s rag.Store) string {
	t.Helper()
	ctx := t.Context()
	x, err := s.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	var out strings.Builder
	stats, err := x.Stats(ctx)
	fmt.Fprintln(&out, stats.Settings, stats.Files, stats.Chunks, stats.Dimensions, err)
	for f, err := range x.Files(ctx) {
		fmt.Fprintln(&out, f, err)
		var ids []rag.ID
		for i := range f.Chunks {
			ids = append(ids, rag.ID{File: f.ID, Seq: i})
		}
		chunks, err := x.Chunks(ctx, ids, true)
		fmt.Fprintln(&out, chunks, err)
	}
	for i := range 20 {
		found, err := x.Match(ctx, fmt.Sprintf("word%d word%d word%d", i, 2*i, 5*i), 50)
		fmt.Fprintln(&out, found, err)
		found, err = x.Nearest(ctx, []float32{float32(i), 1, 2, -float32(i)}, 50)
		fmt.Fprintln(&out, found, err)
	}
	return out.String()
}

// version1 returns a file with the first version. It is built once: each build takes several fsyncs.
var version1 = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "loki-sqlite-test-*")
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "base.db")
	err = buildVersion(context.Background(), sqlite.New(path), 1)
	var data []byte
	if err == nil {
		data, err = os.ReadFile(path)
	}
	return data, errors.Join(err, os.RemoveAll(dir))
})

// built returns the path of a file of the test's own with the first version.
func built(t *testing.T) string {
	t.Helper()
	data, err := version1()
	path := filepath.Join(t.TempDir(), "base.db")
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// explained fails the test unless err says what to do about the file.
func explained(t *testing.T, err error, path string, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("not an error")
	}
	text := err.Error() + "\n" + fault.HintOf(err)
	for _, w := range append(words, path) {
		if !strings.Contains(text, w) {
			t.Errorf("%q does not say %q", text, w)
		}
	}
	if fault.HintOf(err) == "" {
		t.Errorf("%v: not a hint", err)
	}
}

func TestForeignFiles(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]string{"empty": "", "text": strings.Repeat("some text\n", 1000), "short": "SQLite format 3\x00"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "base.db")
			if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := sqlite.New(path).Open(t.Context())
			explained(t, err, path)
		})
	}
	t.Run("database", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "base.db")
		change(t, path, "CREATE TABLE t (x)")
		_, err := sqlite.New(path).Open(t.Context())
		explained(t, err, path, "another kind of file", "mv ")
		_, err = sqlite.New(path).Build(t.Context(), rag.Settings{})
		explained(t, err, path, "another kind of file", "mv ")
		explained(t, sqlite.New(path).Configure(t.Context(), rag.Settings{}), path, "another kind of file")
	})
	t.Run("newer", func(t *testing.T) {
		path := built(t)
		change(t, path, "PRAGMA user_version = 99")
		_, err := sqlite.New(path).Open(t.Context())
		explained(t, err, path, "newer version", "99", "update loki")
		explained(t, buildVersion(t.Context(), sqlite.New(path), 1), path, "newer version", "update loki")
	})
	t.Run("older", func(t *testing.T) {
		path := built(t)
		change(t, path, "PRAGMA user_version = 1")
		_, err := sqlite.New(path).Open(t.Context())
		explained(t, err, path, "older version", "rm ")
		explained(t, buildVersion(t.Context(), sqlite.New(path), 1), path, "older version", "rm ")
	})
	t.Run("no_tables", func(t *testing.T) {
		path := built(t)
		change(t, path, "DROP TABLE base")
		_, err := sqlite.New(path).Open(t.Context())
		explained(t, err, path, "damaged", "build it again")
	})
	t.Run("malformed_settings", func(t *testing.T) {
		path := built(t)
		change(t, path, "UPDATE base SET settings = '{'")
		_, err := sqlite.New(path).Open(t.Context())
		explained(t, err, path, "damaged", "rm ")
	})
}

func change(t *testing.T, path, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err == nil {
		_, err = db.ExecContext(t.Context(), statement)
	}
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestDamageInside lets a build replace what cannot be read, although no document has changed.
func TestDamageInside(t *testing.T) {
	t.Parallel()
	path := built(t)
	want := dump(t, sqlite.New(path))
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i := len(data) / 2; i < len(data); i++ {
		data[i] = byte(r.Uint32())
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := readAll(t.Context(), sqlite.New(path)); err == nil {
		t.Fatal("it can be read")
	}
	if err := buildVersion(t.Context(), sqlite.New(path), 1); err != nil {
		t.Fatal(err)
	}
	if got := dump(t, sqlite.New(path)); got != want {
		t.Errorf("got\n%.1000s", got)
	}
}

// TestDamage changes and cuts off bytes. What follows is an error with a hint, or an answer.
func TestDamage(t *testing.T) {
	t.Parallel()
	path := built(t)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	errs := 0
	for i := range 60 {
		data := append([]byte(nil), whole...)
		if i%3 == 0 {
			data = data[:r.IntN(len(data))]
		} else {
			for range 1 + r.IntN(200) {
				data[100+r.IntN(len(data)-100)] = byte(r.Uint32())
			}
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := readAll(t.Context(), sqlite.New(path)); err != nil {
			errs++
			explained(t, err, path, "build it again")
		} else if i%3 == 0 && len(data) < len(whole) {
			t.Errorf("%d of %d bytes go unnoticed", len(data), len(whole))
		}
	}
	t.Logf("%d of 60 are noticed", errs)
}

// TestSalvage reads the settings of files that cannot be opened.
func TestSalvage(t *testing.T) {
	t.Parallel()
	want := rag.Settings{EmbeddingModel: "test", ChunkSize: 100, TopK: 3, Documents: []string{"/docs", "https://site.test/**"}}
	path := filepath.Join(t.TempDir(), "base.db")
	b, err := sqlite.New(path).Build(t.Context(), want)
	if err == nil {
		_, err = b.Commit(t.Context(), func(f rag.File) (string, bool) { return f.Source, true })
	}
	if err = errors.Join(err, b.Close()); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	settings := bytes.Index(whole, []byte(`"test"`))
	for _, tt := range []struct {
		name   string
		damage func(data []byte) []byte
		want   *rag.Settings
		hint   string
	}{
		{"truncated", func(data []byte) []byte { return data[:len(data)-5000] }, &want, "--rebuild-rag"},
		{"schema", func(data []byte) []byte { clear(data[100:4000]); return data }, &want, "--rebuild-rag"},
		{"settings", func(data []byte) []byte { clear(data[100:4000]); data[settings] = 0; return data }, nil, "--rag-add"},
		{"other_file", func([]byte) []byte { return bytes.Repeat([]byte("some text"), 1000) }, nil, "--rag-add"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := os.WriteFile(path, tt.damage(bytes.Clone(whole)), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := sqlite.New(path).Open(t.Context())
			explained(t, err, path, "damaged", tt.hint)
			damaged, ok := errors.AsType[*rag.DamagedError](err)
			if !ok || !reflect.DeepEqual(damaged.Settings, tt.want) {
				t.Errorf("%+v", damaged)
			}
		})
	}
}

func readAll(ctx context.Context, s rag.Store) error {
	x, err := s.Open(ctx)
	if err != nil {
		return err
	}
	defer x.Close()
	for f, err := range x.Files(ctx) {
		if err != nil {
			return err
		}
		if _, err := x.Chunks(ctx, []rag.ID{{File: f.ID}}, true); err != nil {
			return err
		}
	}
	for i := range 20 {
		if _, err := x.Match(ctx, fmt.Sprintf("word%d", i), 5); err != nil {
			return err
		}
	}
	_, err = x.Nearest(ctx, []float32{1, 0, 0, 0}, 5)
	return err
}

func TestDamagedBuilds(t *testing.T) {
	t.Parallel()
	want := dump(t, sqlite.New(built(t)))
	for name, data := range map[string]string{"empty": "", "text": strings.Repeat("x", 10_000)} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "base.db")
			for _, file := range []string{".build", ".build.copy", ".build.lock"} {
				if err := os.WriteFile(path+file, []byte(data), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := buildVersion(t.Context(), sqlite.New(path), 1); err != nil {
				t.Fatal(err)
			}
			if got := dump(t, sqlite.New(path)); got != want {
				t.Errorf("got\n%.1000s", got)
			}
			if left, _ := filepath.Glob(path + "?*"); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
	// A damaged index in use is replaced.
	path := built(t)
	if err := os.Truncate(path, 20_000); err != nil {
		t.Fatal(err)
	}
	if err := buildVersion(t.Context(), sqlite.New(path), 1); err != nil {
		t.Fatal(err)
	}
	if got := dump(t, sqlite.New(path)); got != want {
		t.Errorf("got\n%.1000s", got)
	}
}

func TestReadOnlyDirectory(t *testing.T) {
	t.Parallel()
	path := built(t)
	want := dump(t, sqlite.New(path))
	if left, _ := filepath.Glob(path + "?*"); len(left) > 0 {
		t.Errorf("reading leaves %v", left)
	}
	if runtime.GOOS == "windows" || os.Getuid() == 0 {
		t.Skip("all directories can be written")
	}
	dir := filepath.Dir(path)
	for name, mode := range map[string]os.FileMode{path: 0o400, dir: 0o500} {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	if got := dump(t, sqlite.New(path)); got != want {
		t.Errorf("got\n%.1000s", got)
	}
	if _, err := sqlite.New(path).Build(t.Context(), rag.Settings{}); err == nil {
		t.Error("a build begins")
	}
}

// TestNothingChanges looks at the file after a build that finds all as it was.
func TestNothingChanges(t *testing.T) {
	t.Parallel()
	path := built(t)
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := buildVersion(t.Context(), sqlite.New(path), 1); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(before, after) {
		t.Error("the file is another one")
	}
}
