//go:build unix

package input_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"loki/internal/knowledge/input"
)

func TestOnlyRegularFilesAreOpened(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"pipe.md", "pipe.pdf"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Skipf("the file system of the test has no pipes: %v", err)
		}
	}
	for source, is := range map[string]string{"pipe.md": "a named pipe", "pipe.pdf": "a named pipe", "/dev/zero": "a device"} {
		_, err := (&input.Loader{Dir: dir}).Load(t.Context(), []string{source})
		if err == nil || !strings.HasSuffix(err.Error(), filepath.Base(source)+" is "+is+", not a file") {
			t.Errorf("%s: error %v", source, err)
		}
	}
}

func TestPipeOfTheShell(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	source := fmt.Sprintf("/dev/fd/%d", r.Fd())
	if _, err := os.Stat(source); err != nil {
		t.Skipf("there are no open files in /dev/fd: %v", err)
	}
	if _, err := w.WriteString("said"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := new(input.Loader).Load(ctx, []string{source}) // the pipe stays open, so this takes until it is canceled
		ended <- err
	}()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if _, err := w.WriteString("again"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := new(input.Loader).Load(t.Context(), []string{source})
	if err != nil || len(got.Documents) != 1 || !strings.HasSuffix(got.Documents[0].Text, "again") {
		t.Errorf("got %+v, %v", got, err)
	}
}
