package logging

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestFollow changes the file each time that Follow has read all of it.
func TestFollow(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "loki.log")
	write := func(flag int, text string) {
		t.Helper()
		f, err := os.OpenFile(file, flag|os.O_WRONLY|os.O_CREATE, 0o600)
		if err == nil {
			_, err = f.WriteString(text)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write(os.O_APPEND, "old\n")
	changes := []func(){
		func() { write(os.O_APPEND, "one\ntw") },
		func() { write(os.O_APPEND, "o\n") },
		func() { write(os.O_TRUNC, "new\n") },
		func() {
			if err := os.Rename(file, file+".1"); err != nil {
				t.Error(err)
			}
		},
		func() { write(os.O_APPEND, "replaced\n") },
	}
	var out strings.Builder
	err := Follow(t.Context(), file, &out, FollowOptions{Sleep: func(context.Context, time.Duration) error {
		if len(changes) == 0 {
			return context.Canceled
		}
		changes[0]()
		changes = changes[1:]
		return nil
	}})
	if want := "one\ntwo\nnew\nreplaced\n"; err != nil || out.String() != want {
		t.Errorf("%q, %v; want %q", out.String(), err, want)
	}
	if err := Follow(t.Context(), file+".none", io.Discard, FollowOptions{}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestDress(t *testing.T) {
	t.Parallel()
	line := "2026-11-21 09:30:00.000 <12> [WARN] graph/node/llm.go:7 - slow"
	want := "\x1b[37m2026-11-21 09:30:00.000\x1b[0m \x1b[36m<12>\x1b[0m \x1b[1m[WARN]\x1b[0m \x1b[35mgraph/node/llm.go\x1b[0m:\x1b[1m7\x1b[0m - \x1b[33mslow\x1b[0m"
	if got := dress(line, true); got != want {
		t.Errorf("%q", got)
	}
	for _, plain := range []string{"npm warn x", ""} {
		if got := dress(plain, true); got != plain {
			t.Errorf("%q", got)
		}
	}
	if dress(line, false) != line {
		t.Error("colored without being asked")
	}
}
