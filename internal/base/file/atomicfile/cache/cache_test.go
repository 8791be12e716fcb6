package cache

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestFiles(t *testing.T) {
	now := time.Unix(1000, 0)
	f := Files{Dir: filepath.Join(t.TempDir(), "made", "on", "demand"), Now: func() time.Time { return now }}
	if _, ok := f.Get("a"); ok {
		t.Error("an empty cache has an entry")
	}
	f.Put("a", []byte("line 1\nline 2"), 10*time.Second)
	if data, ok := f.Get("a"); !ok || string(data) != "line 1\nline 2" {
		t.Errorf("got %q, %v", data, ok)
	}
	now = now.Add(10 * time.Second)
	if _, ok := f.Get("a"); ok {
		t.Error("the entry outlives its time")
	}
	if entries, _ := os.ReadDir(f.Dir); len(entries) != 0 {
		t.Errorf("left behind: %v", entries)
	}
	for name, text := range map[string]string{"empty": "", "no_line": "12345", "no_number": "x\ndata"} {
		if err := os.WriteFile(f.path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, ok := f.Get(name); ok {
			t.Errorf("the damaged entry %s is a hit", name)
		}
	}
}
