package knowledge_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"loki/internal/knowledge/rag"
)

// Scratch indexes go after 30 days, and the oldest while they take more than 1 GiB; never one in use.
func TestPruneScratch(t *testing.T) {
	a, _ := library(t, "config.yaml", "model: builtin:echo\n")
	now := time.Now()
	dir := filepath.Join(a.Paths.CacheDir, "rags")
	if err := a.Knowledge().PruneScratch(t.Context(), now); err != nil {
		t.Fatal("nothing there:", err)
	}
	days := func(n int) time.Time { return now.AddDate(0, 0, -n) }
	put := func(name string, size int64, used time.Time) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(file, size); err != nil { // takes no space
			t.Fatal(err)
		}
		if err := os.Chtimes(file, used, used); err != nil {
			t.Fatal(err)
		}
	}
	put("old.db", 1, days(31))
	put("broken.db.build", 1, days(40))
	put("large.db", 800<<20, days(3))
	put("later.db", 700<<20, days(2))
	put("left.db", 1, days(1))
	put("left.db.use-1", 0, days(1)) // of a process that was killed

	_, release, err := a.Knowledge().ScratchStore("docs", rag.Settings{EmbeddingModel: "builtin:hash", ChunkSize: 500})
	if err != nil {
		t.Fatal(err)
	}
	used, err := filepath.Glob(filepath.Join(dir, "*.db.use-?*"))
	if err != nil || len(used) != 2 {
		t.Fatal(used, err)
	}
	for _, file := range used {
		if base := filepath.Base(file); base != "left.db.use-1" {
			put(base[:len("0123456789abcdef.db")], 900<<20, days(90))
		}
	}
	here := func() (names []string) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	if err := a.Knowledge().PruneScratch(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	if names := here(); len(names) != 3 || names[2] != "left.db" { // 900 MiB are in use, so the others have to go down to a small one
		t.Errorf("%q", names)
	}
	release()
	if err := a.Knowledge().PruneScratch(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	if names := here(); len(names) != 1 || names[0] != "left.db" {
		t.Errorf("%q", names)
	}
}
