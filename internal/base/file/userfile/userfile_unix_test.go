//go:build unix

package userfile_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"loki/internal/base/file/userfile"
)

func TestReadFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe, file := filepath.Join(dir, "pipe"), filepath.Join(dir, "file")
	if err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.WriteFile(file, []byte("text"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		file: "text", os.DevNull: "", pipe: "is a named pipe, not a file", "/dev/zero": "is a device, not a file",
		dir: "is a directory", filepath.Join(dir, "none"): "no such file",
	} {
		data, err := userfile.ReadFile(t.Context(), path)
		if err != nil {
			data = []byte(err.Error())
		}
		if got := string(data); got != want && (err == nil || !strings.Contains(got, want)) {
			t.Errorf("%s: %q", path, got)
		}
	}
}

// TestReadFileInherited: the pipe of <(command) is read, until ctx ends.
func TestReadFileInherited(t *testing.T) {
	t.Parallel()
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	path := fmt.Sprintf("/dev/fd/%d", in.Fd())
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() {
		_, err := userfile.ReadFile(ctx, path)
		result <- err
	}()
	if _, err := out.Write(bytes.Repeat([]byte(" "), 200<<10)); err != nil { // more than a pipe holds
		t.Fatal(err)
	}
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := out.WriteString("text"); err != nil {
		t.Fatal(err)
	}
	out.Close()
	if data, err := userfile.ReadFile(t.Context(), path); err != nil || !strings.HasSuffix(string(data), "text") {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}
