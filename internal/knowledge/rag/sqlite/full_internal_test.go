package sqlite

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"loki/internal/base/fault"
	"loki/internal/knowledge/rag"
)

// TestFullDisk lets the file reach a limit while it is built.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := New(t.TempDir() + "/x.db")
	if err := buildOne(ctx, s, 1); err != nil {
		t.Fatal(err)
	}
	begin := func(wantResumed bool) *build {
		t.Helper()
		b, err := s.Build(ctx, rag.Settings{})
		if err != nil {
			t.Fatal(err)
		}
		if b.Resumed() != wantResumed {
			t.Errorf("resumed: %v", b.Resumed())
		}
		return b.(*build)
	}
	r := rand.New(rand.NewPCG(1, 2))
	put := func(b *build, path string) error {
		text := make([]byte, 20_000)
		for i := range text {
			text[i] = byte(' ' + r.IntN(90))
		}
		return b.Put(ctx, rag.File{Path: path}, []rag.Chunk{{Text: string(text), Vector: []float32{1}}})
	}
	b := begin(false)
	if err := put(b, "safe"); err != nil {
		t.Fatal(err)
	}
	if err := b.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if err := b.c.run("PRAGMA max_page_count = 60"); err != nil {
		t.Fatal(err)
	}
	var err error
	for i := 0; i < 100 && err == nil; i++ {
		err = put(b, fmt.Sprint("more", i))
	}
	if err == nil {
		_, err = b.Commit(ctx, func(rag.File) (string, bool) { return "", true })
	}
	if err == nil || !strings.Contains(err.Error(), "no space is left") || fault.HintOf(err) == "" {
		t.Fatalf("got %v", err)
	}
	if _, err := b.Commit(ctx, func(rag.File) (string, bool) { return "", true }); err == nil {
		t.Error("it is committed")
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	x, err := s.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if found, err := x.Match(ctx, "common", 9); err != nil || len(found) != 1 {
		t.Errorf("the index in use finds %v, %v", found, err)
	}
	b = begin(true)
	for path, want := range map[string]bool{"1": true, "safe": true, "more0": false} {
		if _, ok, err := b.File(ctx, path); err != nil || ok != want {
			t.Errorf("file %s: %v, %v", path, ok, err)
		}
	}
	stats, err := b.Commit(ctx, func(rag.File) (string, bool) { return "", true })
	if err != nil || stats.Files != 2 {
		t.Errorf("%+v, %v", stats, err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

// TestOwner looks for the number of a process that has taken the lock and not written it yet.
func TestOwner(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	synctest.Test(t, func(t *testing.T) {
		for _, text := range []string{"", "12"} {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			wg.Go(func() {
				time.Sleep(lockWait / 2)
				if err := os.WriteFile(path, []byte("123\n"), 0o600); err != nil {
					t.Error(err)
				}
			})
			if got := owner(t.Context(), path); got != "process 123" {
				t.Error(got)
			}
			wg.Wait()
		}
		if got := owner(t.Context(), path+"x"); got != "another process" {
			t.Error(got)
		}
	})
}
