package watch_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"loki/internal/workflow/schedule/trigger/watch"
)

// begin watches until the end of the test or stop, and sends what is found.
func begin(t *testing.T, o watch.Options) (found <-chan []watch.File, stop func()) {
	t.Helper()
	files := make(chan []watch.File)
	before, _ := os.Stat(o.State)
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	work.Go(func() {
		if err := watch.Run(ctx, o, func(f []watch.File) error {
			select {
			case files <- f:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}); err != nil {
			t.Error(err)
		}
	})
	stop = func() { cancel(); work.Wait() }
	t.Cleanup(stop)
	for range 600 { // until it has begun
		if is, err := os.Stat(o.State); err == nil && (o.Missed || before == nil || !is.ModTime().Equal(before.ModTime())) {
			return files, stop
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("it did not begin")
	return nil, nil
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// expect waits for files, in any number of batches, and returns their changes by name.
func expect(t *testing.T, found <-chan []watch.File, want ...string) {
	t.Helper()
	var got []string
	for len(got) < len(want) {
		select {
		case files := <-found:
			for _, f := range files {
				got = append(got, f.Change+" "+filepath.Base(f.Path))
			}
		case <-time.After(time.Minute):
			t.Fatalf("found %q, want %q", got, want)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Fatalf("found %q, want %q", got, want)
	}
}

func TestWatch(t *testing.T) {
	for name, untold := range map[string]bool{"told": false, "polled": true} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			o := watch.Options{
				Dir: dir, Paths: []string{"in/**/*.pdf"}, Create: true, Change: true, Missed: true, State: filepath.Join(t.TempDir(), "seen.json"),
				Debounce: 50 * time.Millisecond, Untold: untold,
			}
			if untold {
				o.Every = 20 * time.Millisecond
			}
			write(t, filepath.Join(dir, "in/old.pdf"), "before the first watch")
			found, stop := begin(t, o)
			write(t, filepath.Join(dir, "in/a.pdf"), "a")
			write(t, filepath.Join(dir, "in/a.txt"), "another kind")
			expect(t, found, "create a.pdf")
			write(t, filepath.Join(dir, "in/deep/er/b.pdf"), "b") // in new directories
			expect(t, found, "create b.pdf")
			write(t, filepath.Join(dir, "in/a.pdf"), "longer")
			expect(t, found, "change a.pdf")
			stop()

			write(t, filepath.Join(dir, "in/c.pdf"), "while there is no watch")
			found, stop = begin(t, o)
			expect(t, found, "create c.pdf")
			stop()

			write(t, filepath.Join(dir, "in/d.pdf"), "missed")
			o.Missed, o.Create = false, false
			found, stop = begin(t, o)
			write(t, filepath.Join(dir, "in/e.pdf"), "does not count")
			write(t, filepath.Join(dir, "in/old.pdf"), "changed")
			expect(t, found, "change old.pdf")
			stop()
		})
	}
}

func TestLinks(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	write(t, filepath.Join(dir, "x"), "")
	found, _ := begin(t, watch.Options{Dir: dir, Paths: []string{"*.pdf"}, Create: true, State: filepath.Join(t.TempDir(), "s"), Every: 20 * time.Millisecond, Untold: true})
	write(t, filepath.Join(other, "secret.pdf"), "x")
	for _, link := range [][2]string{{filepath.Join(other, "secret.pdf"), "out.pdf"}, {other, "dir.pdf"}, {"nowhere", "broken.pdf"}, {"x", "within.pdf"}} {
		if err := os.Symlink(link[0], filepath.Join(dir, link[1])); err != nil {
			t.Skip(err)
		}
	}
	expect(t, found, "create within.pdf")
	write(t, filepath.Join(dir, "last.pdf"), "")
	expect(t, found, "create last.pdf") // and none of the others before it
}

func TestFailedStartIsRepeated(t *testing.T) {
	dir := t.TempDir()
	o := watch.Options{Dir: dir, Paths: []string{"*"}, Create: true, State: filepath.Join(t.TempDir(), "s"), Every: 20 * time.Millisecond, Untold: true}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	write(t, o.State, "{}") // so that all is new
	o.Missed = true
	write(t, filepath.Join(dir, "a"), "")
	tries := 0
	if err := watch.Run(ctx, o, func([]watch.File) error {
		if tries++; tries == 1 {
			return errors.New("the database is away")
		}
		cancel()
		return nil
	}); err != nil || tries != 2 {
		t.Fatal(tries, err)
	}
}

func TestCrowd(t *testing.T) {
	dir := t.TempDir()
	for i := range watch.MaxFiles + 10 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	state := filepath.Join(t.TempDir(), "s")
	if err := watch.Run(ctx, watch.Options{Dir: dir, Paths: []string{"*"}, State: state, Untold: true}, func([]watch.File) error { return errors.New("nothing is new") }); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(state); err != nil {
		t.Fatal(err)
	}
}
