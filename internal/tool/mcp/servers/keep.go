package servers

import (
	"crypto/sha256"
	"fmt"
	"mime"
	"os"
	"path/filepath"
	"time"

	"loki/internal/base/file/atomicfile"
)

// keptBytes is how long files with what MCP servers have sent are kept.
const keptBytes = 7 * 24 * time.Hour

// keepBytes keeps in a directory what an MCP server has sent and models do not take. The name of the file is made of its content.
func keepBytes(dir, kind string, data []byte) (string, error) {
	entries, _ := os.ReadDir(dir) // none before the first one
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > keptBytes {
			_ = os.Remove(filepath.Join(dir, e.Name())) // the next time
		}
	}
	extension := ".bin"
	if kind, _, err := mime.ParseMediaType(kind); err == nil {
		if known, err := mime.ExtensionsByType(kind); err == nil && len(known) > 0 {
			extension = known[0]
		}
	}
	file := filepath.Join(dir, fmt.Sprintf("%.8x%s", sha256.Sum256(data), extension))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return file, atomicfile.Write(file, data, atomicfile.Options{Mode: atomicfile.Private})
}
