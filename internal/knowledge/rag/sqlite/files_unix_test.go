//go:build unix

package sqlite_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"loki/internal/knowledge/rag"
	"loki/internal/knowledge/rag/sqlite"
)

func TestOnlyRegularFilesAreOpened(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skipf("the file system of the test has no pipes: %v", err)
	}
	for name, path := range map[string]string{"pipe": path, "directory": t.TempDir()} {
		s := sqlite.New(path)
		_, opened := s.Open(t.Context())
		_, built := s.Build(t.Context(), rag.Settings{EmbeddingModel: "test", ChunkSize: 100})
		for what, err := range map[string]error{"open": opened, "build": built, "configure": s.Configure(t.Context(), rag.Settings{})} {
			if err == nil || !strings.Contains(err.Error(), "it is not a regular file") {
				t.Errorf("%s, %s: error %v", name, what, err)
			}
		}
	}
	// A build that cannot be gone on with is begun anew.
	path = filepath.Join(t.TempDir(), "y.db")
	if err := syscall.Mkfifo(path+".build", 0o600); err != nil {
		t.Fatal(err)
	}
	if err := buildVersion(t.Context(), sqlite.New(path), 1); err != nil {
		t.Error(err)
	}
}
