package line

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHistory(t *testing.T) {
	var h History
	for _, entry := range []string{"a", "a", "", " \n", "b", "a"} {
		h.Add(t.Context(), entry)
	}
	if diff := cmp.Diff([]string{"a", "b", "a"}, h.Entries()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for i := range HistoryLimit + 5 {
		h.Add(t.Context(), fmt.Sprint(i))
	}
	if got := h.Entries(); len(got) != HistoryLimit || got[0] != "5" {
		t.Errorf("got %d entries from %q", len(got), got[0])
	}
}

func open(t *testing.T, file string) *History {
	t.Helper()
	h, err := OpenHistory(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestHistoryFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state", "history")
	if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	h := open(t, file)
	want := []string{"one", "two\nlines\twith \"quotes\"", "世界"}
	for _, entry := range want {
		h.Add(t.Context(), entry)
	}
	if err := h.Err(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, open(t, file).Entries()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// TestHistoryFileOfMany has several programs add to a file until its oldest entries go.
func TestHistoryFileOfMany(t *testing.T) {
	file := filepath.Join(t.TempDir(), "history")
	var programs sync.WaitGroup
	const each = HistoryLimit/2 + 50
	for p := range 4 {
		h := open(t, file)
		programs.Go(func() {
			for i := range each {
				h.Add(t.Context(), fmt.Sprintf("%d of %d", i, p))
			}
			if err := h.Err(); err != nil {
				t.Error(err)
			}
		})
	}
	programs.Wait()
	h := open(t, file)
	if got := len(h.Entries()); got != HistoryLimit {
		t.Errorf("got %d entries", got)
	}
	h.Add(t.Context(), "one more")
	if h = open(t, file); h.lines != HistoryLimit || h.Entries()[HistoryLimit-1] != "one more" {
		t.Errorf("the file has %d lines, the last of them is %q", h.lines, h.Entries()[HistoryLimit-1])
	}
}

func TestHistoryFileFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "missing", "history")
	h := open(t, file)
	if err := os.WriteFile(filepath.Dir(file), nil, 0o600); err != nil { // where the directory should be
		t.Fatal(err)
	}
	h.Add(t.Context(), "kept in memory")
	if h.Err() == nil {
		t.Error("no error")
	}
	if len(h.Entries()) != 1 {
		t.Error("the entry is lost")
	}
}

// FuzzHistory reads damaged files.
func FuzzHistory(f *testing.F) {
	f.Add("\"a\"\n\"b\\nc\"\n")
	f.Add("\"a\nnull\n{}\n\"\\ud800\"\n")
	f.Fuzz(func(t *testing.T, content string) {
		file := filepath.Join(t.TempDir(), "history")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		h := open(t, file)
		before := len(h.Entries())
		if !strings.HasSuffix(content, "\n") {
			return
		}
		h.Add(t.Context(), "the last")
		if got := open(t, file).Entries(); len(got) < min(before, HistoryLimit-1) || got[len(got)-1] != "the last" {
			t.Fatalf("got %q", got)
		}
	})
}
